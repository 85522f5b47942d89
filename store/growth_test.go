// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/measure"
)

// One object may have any number of indexed values: adding, changing and removing it takes linear
// time in their number, since it happens under the lock that all others wait for.
func TestGrowth_ValuesOfOneObject(t *testing.T) {
	for name, value := range map[string]func(i int) string{
		"distinct": strconv.Itoa,
		"repeated": func(int) string { return "same" },
	} {
		t.Run(name, func(t *testing.T) {
			measure.Growth(t, 2000, func(n int) {
				count := n
				indexer := New(
					MetaNamespaceKeyFunc,
					Options{Indexers: Indexers{"many": func(any) ([]string, error) {
						values := make([]string, count)
						for i := range values {
							values[i] = value(i + count)
						}
						return values, nil
					}}},
				)
				require.NoError(t, indexer.Add(pod("ns/a")))
				count = n / 2 // all values differ from those before
				require.NoError(t, indexer.Update(pod("ns/a")))
				require.NoError(t, indexer.Delete(pod("ns/a")))
			})
		})
	}
}

// Any number of objects may share a value: each is added and removed in constant time on average.
func TestGrowth_ObjectsOfOneValue(t *testing.T) {
	pods := make([]any, 8*4000)
	for i := range pods {
		pods[i] = pod("ns/" + strconv.Itoa(i) + " node=n1")
	}
	measure.Growth(t, 4000, func(n int) {
		indexer := New(MetaNamespaceKeyFunc, Options{Indexers: Indexers{"node": byNode}})
		for _, pod := range pods[:n] {
			require.NoError(t, indexer.Add(pod))
		}
		for _, pod := range pods[:n] {
			require.NoError(t, indexer.Delete(pod))
		}
	})
}

// An object may have a value any number of times: a lookup by it finds the objects of that value
// once, while it holds the lock.
func TestGrowth_RepeatedValuesOfALookup(t *testing.T) {
	pods := make([]any, 8*500)
	for i := range pods {
		pods[i] = pod("ns/" + strconv.Itoa(i) + " tags=same")
	}
	measure.Growth(t, 500, func(n int) {
		indexer := New(MetaNamespaceKeyFunc, Options{Indexers: Indexers{"tag": byTag}})
		require.NoError(t, indexer.Replace(pods[:n], "1"))
		probe := pod("ns/probe tags=same" + strings.Repeat(",same", n))
		for range 10 {
			list, err := indexer.Index("tag", probe)
			require.NoError(t, err)
			require.Len(t, list, n)
		}
	})
}

// A list with an object without a key is refused before any index function runs, as in client-go.
func TestReplace_KeysBeforeIndexes(t *testing.T) {
	indexer := New(
		MetaNamespaceKeyFunc,
		Options{Indexers: Indexers{"broken": func(any) ([]string, error) {
			return nil, errors.New("broken")
		}}},
	)
	var keyError KeyError
	require.ErrorAs(t, indexer.Replace([]any{pod("ns/a"), 7}, "1"), &keyError)
}
