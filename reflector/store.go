// SPDX-License-Identifier: Apache-2.0

package reflector

import "example.com/informerstack/store"

// Store is what a reflector keeps equal to the collection: a store.Store, or a queue in front of
// one.
//
// A reflector calls all methods, also those of the optional interfaces below, from the goroutine
// that runs it, one at a time. An error means that the store did not take the change: the reflector
// does not move past it, see ApplyError.
//
// Source: tools/cache/reflector.go ReflectorStore
type Store interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	// Replace makes the store hold exactly list. The store owns list from then on.
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// BookmarkStore is a Store that wants to know when time passed on the server although no object
// changed.
//
// Source: tools/cache/reflector.go ReflectorBookmarkStore
type BookmarkStore interface {
	Bookmark(resourceVersion string) error
}

// ResourceVersionUpdater is a Store that wants to know each resourceVersion the watch moves on to.
// It is called after the change itself.
//
// Source: tools/cache/reflector.go ResourceVersionUpdater
type ResourceVersionUpdater interface {
	UpdateResourceVersion(resourceVersion string)
}

// TransformingStore is a Store that transforms what it is given. Its reflector needs no
// Options.Transform, which would be a second transform; the objects it gets are as the server sent
// them, each once.
//
// Source: tools/cache/reflector.go TransformingStore
type TransformingStore interface {
	Store
	Transformer() store.TransformFunc
}
