// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"
	"runtime"
	"sync"
	"weak"

	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/readahead"
)

// Budget bounds the bytes that watches have read ahead of their receivers. The watches of one
// client and server share one, see Options.ReadAhead. A Budget may be used by any number of watches
// at the same time. Its zero value has no bytes, as NewBudget(0).
//
// Each watch has 64 KiB for itself, and gets more while it holds less than what is free. So a watch
// with a receiver that hangs holds at most half of what the others had left, and stops no other
// one.
type Budget struct{ bytes readahead.Budget }

// NewBudget returns a Budget of size bytes. With 0 or less, each watch has only its own 64 KiB.
func NewBudget(size int64) *Budget {
	b := &Budget{}
	b.bytes.Add(size)
	return b
}

// bytesOf returns the bytes of b. Without a Budget, they are those of clients that are not known.
func bytesOf(b *Budget) *readahead.Budget {
	if b == nil {
		return readahead.Unknown
	}
	return &b.bytes
}

// budgetKey is a client and a host. Servers under different paths of a host share a Budget.
type budgetKey struct {
	client weak.Pointer[http.Client]
	host   string
}

var budgets sync.Map // of *Budget, by budgetKey

// budgetOf returns the Budget of the watches of a client and its server, or nil if it is not known.
// It is forgotten with the client.
func budgetOf(client Getter) *Budget {
	c, ok := client.(*rest.RESTClient)
	if !ok || c.Client == nil || c.Client == http.DefaultClient {
		return nil
	}
	key := budgetKey{weak.Make(c.Client), c.Get().URL().Host}
	budget, known := budgets.LoadOrStore(key, NewBudget(readahead.DefaultBytes()))
	if !known {
		runtime.AddCleanup(c.Client, func(key budgetKey) { budgets.Delete(key) }, key)
	}
	return budget.(*Budget)
}
