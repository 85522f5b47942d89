// SPDX-License-Identifier: Apache-2.0

package cache

// UndeltaStore is a Store that passes its whole content to PushFunc after each change that
// succeeded, for consumers that want the collection, not its changes. PushFunc may be called from
// several goroutines at once, and twice with the same content.
//
// Source: tools/cache/undelta_store.go UndeltaStore
type UndeltaStore struct {
	Store
	PushFunc func([]any)
}

var _ Store = (*UndeltaStore)(nil)

// NewUndeltaStore returns an empty store.
//
// Source: tools/cache/undelta_store.go NewUndeltaStore
func NewUndeltaStore(pushFunc func([]any), keyFunc KeyFunc) *UndeltaStore {
	return &UndeltaStore{Store: NewStore(keyFunc), PushFunc: pushFunc}
}

// Add stores obj, and pushes.
func (u *UndeltaStore) Add(obj any) error { return u.push(u.Store.Add(obj)) }

// Update stores obj, and pushes.
func (u *UndeltaStore) Update(obj any) error { return u.push(u.Store.Update(obj)) }

// Delete removes the object that has obj's key, and pushes.
func (u *UndeltaStore) Delete(obj any) error { return u.push(u.Store.Delete(obj)) }

// Replace makes the store hold exactly list, and pushes.
func (u *UndeltaStore) Replace(list []any, resourceVersion string) error {
	return u.push(u.Store.Replace(list, resourceVersion))
}

// push passes on the content, unless the change failed.
func (u *UndeltaStore) push(err error) error {
	if err == nil {
		u.PushFunc(u.List())
	}
	return err
}
