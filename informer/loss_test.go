// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/store"
)

// unversioned is a server of lists without a resourceVersion, as those of a fake client.
type unversioned struct{ resourceVersion string }

func (s unversioned) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: s.resourceVersion},
		Items:    []corev1.Pod{*podAt("a", s.resourceVersion)},
	}, nil
}

func (unversioned) List(
	metav1.ListOptions,
) (runtime.Object, error) {
	return nil, errors.New("unused")
}

func (unversioned) Watch(
	metav1.ListOptions,
) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (unversioned) WatchWithContext(
	context.Context, metav1.ListOptions,
) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (unversioned) IsWatchListSemanticsUnSupported() bool { return true }

// refusing is a store that refuses its first write.
type refusing struct {
	store.Indexer
	refused *bool
}

func (x refusing) refuse() error {
	if !*x.refused {
		*x.refused = true
		return errors.New("refused")
	}
	return nil
}

func (x refusing) Add(obj any) error { return errors.Join(x.refuse(), x.Indexer.Add(obj)) }

func (x refusing) Replace(list []any, rv string) error {
	if err := x.refuse(); err != nil {
		return err
	}
	return x.Indexer.Replace(list, rv)
}

// A store that refuses a part of the first list has synced with the next one, even when the lists
// have no resourceVersion.
func TestHasSynced_AfterALossWithoutResourceVersions(t *testing.T) {
	for _, rv := range []string{"", "0", "5"} {
		for name, inOrder := range map[string]bool{"deltafifo": false, "realfifo": true} {
			t.Run(name+" "+rv, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := NewSharedIndexInformer(unversioned{rv}, &corev1.Pod{}, Options{
						InOrder: inOrder,
						WrapIndexer: func(x store.Indexer) store.Indexer {
							return refusing{x, new(bool)}
						},
					})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					go s.Run(ctx)
					time.Sleep(time.Minute)
					require.Len(t, s.GetStore().List(), 1)
					require.True(t, s.HasSynced())
				})
			})
		}
	}
}

// slowQueue is slow after a change was processed, as a metric or a trace of a queue may be.
type slowQueue struct {
	deltafifo.QueueWithBatch
	fails bool
}

func (q *slowQueue) process(p deltafifo.PopProcessFunc) deltafifo.PopProcessFunc {
	return func(obj any, initial bool) error {
		if q.fails {
			q.fails = false
			return errors.New("the wrapper failed")
		}
		err := p(obj, initial)
		if err != nil {
			time.Sleep(10 * time.Second)
		}
		return err
	}
}

func (q *slowQueue) PopBatch(b deltafifo.ProcessBatchFunc, p deltafifo.PopProcessFunc) error {
	return q.QueueWithBatch.PopBatch(b, q.process(p))
}

func (q *slowQueue) Pop(p deltafifo.PopProcessFunc) (any, error) {
	return q.QueueWithBatch.Pop(q.process(p))
}

// A list that arrives between the loss of a change and the end of its processing does not leave the
// version behind for ever; nor does a wrapper that fails by itself lose the list.
func TestLostChange_BetweenQueueAndReflector(t *testing.T) {
	for name, wrapperFails := range map[string]bool{
		"slow after a loss": false, "wrapper fails": true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewSharedIndexInformer(unversioned{"5"}, &corev1.Pod{}, Options{
					InOrder: true,
					WrapQueue: func(q deltafifo.Queue) deltafifo.Queue {
						return &slowQueue{q.(deltafifo.QueueWithBatch), wrapperFails}
					},
					WrapIndexer: func(x store.Indexer) store.Indexer {
						refused := wrapperFails
						return refusing{x, &refused}
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go s.Run(ctx)
				time.Sleep(10 * time.Minute)
				require.Len(t, s.GetStore().List(), 1)
				require.True(t, s.HasSynced())
				waiting, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				require.NoError(t, s.WaitForResourceVersion(waiting, "5"))
			})
		})
	}
}
