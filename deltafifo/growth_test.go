// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/store"
)

// A queue takes about linear time in the number of changes.
func TestGrowth(t *testing.T) {
	objs := benchObjects(8 * 1000)
	queues := map[string]func(known KeyListerGetter) Queue{
		"DeltaFIFO": func(known KeyListerGetter) Queue {
			return NewDeltaFIFO(Options{KnownObjects: known})
		},
		"RealFIFO": func(known KeyListerGetter) Queue {
			return NewRealFIFO(Options{KnownObjects: known})
		},
	}
	loads := map[string]func(t *testing.T, q Queue, n int){
		"changes of one object": func(t *testing.T, q Queue, n int) {
			for range n {
				require.NoError(t, q.Update(objs[0]))
			}
		},
		"one change of each object": func(t *testing.T, q Queue, n int) {
			for _, obj := range objs[:n] {
				require.NoError(t, q.Add(obj))
			}
		},
		"a list, a resync and an empty list": func(t *testing.T, q Queue, n int) {
			require.NoError(t, q.Replace(objs[:n], ""))
			require.NoError(t, q.Resync())
			require.NoError(t, q.Replace(nil, ""))
		},
	}
	for name, newQueue := range queues {
		for what, load := range loads {
			t.Run(fmt.Sprintf("%s/%s", name, what), func(t *testing.T) {
				measure.Growth(t, 1000, func(n int) {
					known := &knownObjects{objs: map[string]any{}}
					for _, obj := range objs[:n] {
						key, _ := store.MetaNamespaceKeyFunc(obj)
						known.objs[key] = obj
					}
					q := newQueue(known)
					load(t, q, n)
					popAll(t, q, nil)
				})
			})
		}
	}
}

// A batch ends before the second change of a key, so changes of two objects by turns are many
// small batches: popping them takes linear time too.
func TestGrowth_Batches(t *testing.T) {
	objs := benchObjects(2)
	measure.Growth(t, 1000, func(n int) {
		q := NewRealFIFO(Options{AtomicEvents: true})
		for i := range n {
			require.NoError(t, q.Add(objs[i%2]))
		}
		q.Close()
		for {
			err := q.PopBatch(func([]Delta, bool) error { return nil }, nil)
			if err != nil {
				return
			}
		}
	})
}
