// SPDX-License-Identifier: Apache-2.0

package reflector

// Store is what a reflector keeps equal to the collection: a store.Store, or a queue in front of one.
//
// Source: tools/cache/reflector.go ReflectorStore
type Store interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	Replace(list []any, resourceVersion string) error
	Resync() error
}
