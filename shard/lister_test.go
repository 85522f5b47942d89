// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector"
)

// A watch of the Leases follows a list, or a streaming list that is the same watch.
func TestListFirst(t *testing.T) {
	list, question := metav1.ListOptions{}, metav1.ListOptions{Limit: 1}
	stream := metav1.ListOptions{SendInitialEvents: new(true)}
	for _, test := range []struct {
		before  []metav1.ListOptions // lists, unless they are streams
		watches bool
		refused bool
	}{
		{[]metav1.ListOptions{list}, false, false},
		{[]metav1.ListOptions{list}, true, true},
		{[]metav1.ListOptions{list, question}, true, true},
		{[]metav1.ListOptions{stream}, false, true},
		{[]metav1.ListOptions{stream, list}, false, false}, // the stream has failed
		{[]metav1.ListOptions{list, list}, true, true},
	} {
		watched := 0
		l := &listFirst{ListerWatcher: &reflector.ListWatch{
			ListWithContextFunc: func(
				context.Context, metav1.ListOptions,
			) (runtime.Object, error) {
				return &coordinationv1.LeaseList{}, nil
			},
			WatchFuncWithContext: func(
				context.Context, metav1.ListOptions,
			) (watch.Interface, error) {
				watched++
				return watch.NewFake(), nil
			},
		}}
		open := func(options metav1.ListOptions) error {
			_, err := l.WatchWithContext(t.Context(), options)
			return err
		}
		for _, options := range test.before {
			if options.SendInitialEvents != nil {
				assert.NoError(t, open(options))
				continue
			}
			_, err := l.ListStream(t.Context(), options, func(runtime.Object) error { return nil })
			assert.NoError(t, err)
		}
		if test.watches {
			assert.NoError(t, open(metav1.ListOptions{}))
			_, err := l.ListStream(t.Context(), question, func(runtime.Object) error { return nil })
			assert.NoError(t, err) // it is no list
		}
		before := watched
		err := open(metav1.ListOptions{})
		assert.Equal(t, test.refused, apierrors.IsResourceExpired(err), "%+v", test)
		assert.Equal(t, !test.refused, watched > before, "%+v", test)
	}
}
