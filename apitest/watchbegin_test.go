// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A watch from now sends what the client writes as soon as it has the headers of the answer.
func TestWatch_FromNowIsBeforeTheHeaders(t *testing.T) {
	for _, resourceVersion := range []string{"", "0"} {
		s := NewServer(Options{})
		defer s.Close()
		began := s.log.current()
		written := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "written"}}
		written.APIVersion, written.Kind = "v1", "Namespace"
		require.NoError(t, s.Create(written))
		now := target{resource: s.namespaces}
		selected, err := newSelector(now, nil, nil)
		require.NoError(t, err)
		w := &stream{call: &call{server: s, target: now}, selector: selected}
		off := false
		options := internalversion.ListOptions{
			ResourceVersion: resourceVersion, SendInitialEvents: &off,
		}
		_, err = w.begin(options, 0, began)
		require.NoError(t, err)
		require.Equal(t, began, w.from)
		require.Equal(t, began, w.coll.events[w.pos-w.coll.dropped].now.rv-1)
	}
}
