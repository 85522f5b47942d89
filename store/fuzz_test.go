// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	"example.com/informerstack/internal/tools/storemodel"
)

// Any sequence of operations leaves our store, client-go's and a searched map with the same
// content.
func FuzzStore(f *testing.F) {
	f.Add([]byte("add update delete"))
	f.Add([]byte{6, 11, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 8, 1, 7, 5, 0, 1, 2, 0, 1, 2})
	f.Fuzz(func(t *testing.T, input []byte) {
		storemodel.New(t, input[:min(len(input), 2000)], subjects(t)...).Run()
	})
}

// A key that can be split is put together again.
func FuzzSplitMetaNamespaceKey(f *testing.F) {
	for _, key := range []string{"", "a", "ns/a", "/a", "ns/", "a/b/c", "/", "//"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		name, err := ParseObjectName(key)
		if err != nil {
			return
		}
		if got := name.String(); got != key && got != key[1:] { // "/a" is written "a"
			t.Fatalf("%q became %q", key, got)
		}
	})
}
