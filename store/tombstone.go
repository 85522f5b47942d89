// SPDX-License-Identifier: Apache-2.0

package store

// DeletedFinalStateUnknown is a tombstone: the object is gone, but its delete was not seen. A watch that broke hid it, and
// the next LIST no longer held the object. Obj is the last state that was cached, maybe stale, or nil when even that is
// unknown.
//
// Source: tools/cache/delta_fifo.go DeletedFinalStateUnknown
type DeletedFinalStateUnknown struct {
	Key string
	Obj any
}

// DeletionHandlingMetaNamespaceKeyFunc is MetaNamespaceKeyFunc that also knows the key of a tombstone. Use it in delete
// handlers.
//
// Source: tools/cache/controller.go DeletionHandlingMetaNamespaceKeyFunc
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return tombstone.Key, nil
	}
	return MetaNamespaceKeyFunc(obj)
}

// DeletionHandlingObjectToName is ObjectToName that also knows the name of a tombstone.
//
// Source: tools/cache/controller.go DeletionHandlingObjectToName
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return ParseObjectName(tombstone.Key)
	}
	return ObjectToName(obj)
}
