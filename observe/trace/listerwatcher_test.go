// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
)

// answers answers each WATCH with watch, and no LIST. It counts the requests.
type answers struct {
	watch        watch.Interface
	lists, opens int
}

func (a *answers) ListWithContext(
	context.Context, metav1.ListOptions,
) (runtime.Object, error) {
	a.lists++
	return nil, syscall.ECONNREFUSED
}

func (a *answers) WatchWithContext(
	context.Context, metav1.ListOptions,
) (watch.Interface, error) {
	a.opens++
	return a.watch, nil
}

// A reflector that cannot reach the server tries a streaming list in each round, traced or not: it
// learns nothing of what the server supports. A missing watch is an error, not a panic.
func TestListerWatcher_NoWatch(t *testing.T) {
	for name, w := range map[string]watch.Interface{"empty": watch.NewEmptyWatch(), "nil": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{watch: w}
				r := reflector.New(trace.ListerWatcher(a, func(trace.Event) {}), &corev1.Pod{},
					deltafifo.NewDeltaFIFO(deltafifo.Options{}), reflector.Options{
						WatchErrorHandler: func(context.Context, *reflector.Reflector, error) {},
					})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				r.Run(ctx)
				assert.Greater(t, a.lists, 3)
				assert.Equal(t, a.lists, a.opens)
			})
		})
	}
}
