// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// InformerName names a program's informers in metrics. The name is unique in a process until it is
// released. A nil *InformerName has no name and no metrics.
//
// If several informers of one resource have one name, only the first has metrics, so that no two
// informers write to the same metric.
//
//	N1  names[n.name] == n  <=>  n is not released
//	N2  resources[r] is true  =>  n is not released
//
// Source: tools/cache/identity.go InformerName
type InformerName struct {
	name string

	mu        sync.Mutex
	released  bool
	resources map[schema.GroupVersionResource]*atomic.Bool // true while the first has metrics
}

// The lock of informerNames is taken before that of a name.
var informerNames = struct {
	mu    sync.Mutex
	names map[string]*InformerName
}{names: map[string]*InformerName{}}

// NewInformerName reserves a name. It fails if the name is empty or taken.
//
// Source: tools/cache/identity.go NewInformerName
func NewInformerName(name string) (*InformerName, error) {
	if name == "" {
		return nil, errors.New("informer name cannot be empty")
	}
	informerNames.mu.Lock()
	defer informerNames.mu.Unlock()
	if informerNames.names[name] != nil {
		return nil, fmt.Errorf("informer name %q is already registered", name)
	}
	n := &InformerName{name: name, resources: map[schema.GroupVersionResource]*atomic.Bool{}}
	informerNames.names[name] = n
	return n, nil
}

// Name returns the name, or "" for nil.
func (n *InformerName) Name() string {
	if n == nil {
		return ""
	}
	return n.name
}

// WithResource returns the identity of an informer of gvr. Only the first one of each gvr is
// reserved.
func (n *InformerName) WithResource(gvr schema.GroupVersionResource) InformerNameAndResource {
	id := InformerNameAndResource{name: n.Name(), gvr: gvr}
	if n == nil {
		return id
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.released:
	case n.resources[gvr] != nil:
		klog.Background().Error(nil, "A second informer of this name and resource has no metrics",
			"informerName", n.name, "resource", gvr)
	default:
		id.reserved = new(atomic.Bool)
		id.reserved.Store(true)
		n.resources[gvr] = id.reserved
	}
	return id
}

// Release makes the name available again. No identity of it is reserved any more. A second call is
// a no-op.
func (n *InformerName) Release() {
	if n == nil {
		return
	}
	informerNames.mu.Lock()
	defer informerNames.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.released {
		return
	}
	n.released = true
	for _, reserved := range n.resources {
		reserved.Store(false)
	}
	clear(n.resources)
	delete(informerNames.names, n.name)
}

// InformerNameAndResource is the identity of one informer. The zero value has no name and no
// metrics.
//
// Source: tools/cache/identity.go InformerNameAndResource
type InformerNameAndResource struct {
	name     string
	gvr      schema.GroupVersionResource
	reserved *atomic.Bool // nil: never
}

// Reserved reports whether the informer has metrics. It takes no lock.
func (n InformerNameAndResource) Reserved() bool { return n.reserved != nil && n.reserved.Load() }

// Name returns the informer's name.
func (n InformerNameAndResource) Name() string { return n.name }

// GroupVersionResource returns the resource that the informer lists.
func (n InformerNameAndResource) GroupVersionResource() schema.GroupVersionResource { return n.gvr }

// ResetInformerNamesForTesting releases every name of the process.
//
// Source: tools/cache/identity.go ResetInformerNamesForTesting
func ResetInformerNamesForTesting() {
	informerNames.mu.Lock()
	names := make([]*InformerName, 0, len(informerNames.names))
	for _, name := range informerNames.names {
		names = append(names, name)
	}
	informerNames.mu.Unlock()
	for _, name := range names {
		name.Release()
	}
}
