// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"

	"example.com/informerstack/internal/tools/parity"
)

// A program that compiles against client-go's package compiles against this one.
func TestParity(t *testing.T) {
	parity.Check(t, "k8s.io/client-go/tools/cache", "example.com/informerstack/compat/cache", known)
}

// known are the differences that stay, and why.
var known = map[string]string{
	"HandlerOptions.SkipUnchanged":  ourHandlerOption,
	"HandlerOptions.SplitRecreated": ourHandlerOption,
	"HandlerOptions.Coalesce":       ourHandlerOption,
	"HandlerOptions.SkipPanics":     ourHandlerOption,
	"HandlerOptions.DrainTimeout":   ourHandlerOption,

	"v0.36 FakeCustomStore.BookmarkFunc":                     "client-go has it since v0.37",
	"v0.36 FakeCustomStore.LastStoreSyncResourceVersionFunc": "client-go has it since v0.37",
	"v0.36 MutationCache.OnAddOrUpdate":                      "client-go has it since v0.37",
	"v0.36 MutationCache.OnDelete":                           "client-go has it since v0.37",
	"v0.36 MutationCache.internal":                           "client-go has it since v0.37",
}

const ourHandlerOption = "an option of ours that client-go does not have; a literal that names" +
	" client-go's fields compiles"
