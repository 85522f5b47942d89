// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// Verify sees what a streaming list brought as the store will get it, before the store does. It
// sees no LIST.
func TestVerify(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, store := newCollection(), &mapStore{}
			c.create("a")
			c.create("b")
			transform := func(obj any) (any, error) {
				obj.(*v1.Pod).Labels = map[string]string{"mine": "yes"}
				return obj, nil
			}
			verified := 0
			ctx, cancel := context.WithCancel(t.Context())
			r := New(c, &v1.Pod{}, store, Options{
				UseWatchList: &streaming,
				Transform:    transform,
				Verify: func(_ context.Context, r *Reflector, streamed Streamed) {
					verified++
					require.Empty(t, store.story(), "the store has heard nothing")
					require.Empty(t, r.LastSyncResourceVersion())
					require.Len(t, streamed.Items, 2)
					require.Equal(t, "yes", streamed.Items[1].(*v1.Pod).Labels["mine"])
					require.Equal(t, "2", streamed.ResourceVersion)
					again, err := streamed.Transform(&v1.Pod{})
					require.NoError(t, err)
					require.Equal(t, "yes", again.(*v1.Pod).Labels["mine"])
				},
			})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r.Run(ctx)
			}()
			synctest.Wait()
			require.Equal(t, streaming, verified == 1)
			require.Equal(t, []string{"replace by 2"}, store.story())
			cancel()
			<-ended
		})
	}
}
