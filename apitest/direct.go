// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an argument of the server's own methods: a pointer to a typed object, or an
// *unstructured.Unstructured. A typed object needs no apiVersion and kind if the server has a kind
// of that name.
type Object interface {
	runtime.Object
	metav1.Object
}

// Create stores a new object without a request, for the set-up of a test, and overwrites obj with
// the stored object: name, uid, resourceVersion and so on. Unlike a request, it keeps obj's status
// and needs no namespace. The errors are those of a request.
func (s *Server) Create(obj Object) error {
	t, parsed, err := s.take(obj)
	if err != nil {
		return fmt.Errorf("create object: %w", err)
	}
	v, err := s.create(t, parsed, directWrite)
	if err != nil {
		return err
	}
	return give(t.resource.show(v), obj)
}

// Update replaces the object, status included, and overwrites obj with the stored object. An empty
// resourceVersion overwrites any version, for kinds that allow it.
func (s *Server) Update(obj Object) error { return s.replace(obj, directSubresource) }

// UpdateStatus replaces the status of the object, and overwrites obj with the stored object. As a
// client's write of the status, it also changes the annotations and most labels of a built-in kind.
func (s *Server) UpdateStatus(obj Object) error { return s.replace(obj, "status") }

// directWrite is a write by the test, with the name of its field manager.
var directWrite = write{direct: true, manager: "apitest"}

// directSubresource marks an update that replaces spec and status at once.
const directSubresource = "object and status"

func (s *Server) replace(obj Object, subresource string) error {
	t, parsed, err := s.take(obj)
	if err != nil {
		return fmt.Errorf("update object: %w", err)
	}
	t.subresource = subresource
	v, _, err := s.update(t, parsed.meta.UID, directWrite,
		func(*version) (*object, error) { return parsed.copy(), nil })
	if err != nil {
		return err
	}
	return give(t.resource.show(v), obj)
}

// Get reads the object with obj's namespace and name into obj.
func (s *Server) Get(obj Object) error {
	t, _, err := s.take(obj)
	if err != nil {
		return fmt.Errorf("get object: %w", err)
	}
	v := s.current(t)
	if v == nil {
		return t.notFound()
	}
	return give(t.resource.show(v), obj)
}

// current returns the newest version of an object, or nil if it does not exist.
func (s *Server) current(t target) *version {
	s.log.mu.RLock()
	defer s.log.mu.RUnlock()
	return s.log.collectionLocked(t.resource).get(t.key())
}

// Delete deletes the object with obj's namespace and name, with the policy Background, or marks it
// as deleted while it has finalizers.
func (s *Server) Delete(obj Object) error {
	t, _, err := s.take(obj)
	if err != nil {
		return fmt.Errorf("delete object: %w", err)
	}
	_, _, err = s.delete(t, t, background(), nil)
	return err
}

// List returns the objects of a resource ("pods", "deployments.apps") in the order of their keys.
// Resource "" means all resources, with each object in one version; namespace "" means all
// namespaces and the cluster-wide objects.
func (s *Server) List(resource, namespace string) ([]unstructured.Unstructured, error) {
	s.log.mu.RLock()
	found, err := s.listLocked(resource, namespace)
	s.log.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	items := make([]unstructured.Unstructured, len(found))
	for i, v := range found {
		if err := items[i].UnmarshalJSON(v.json); err != nil {
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
	}
	return items, nil
}

func (s *Server) listLocked(resource, namespace string) (found []*version, err error) {
	resources := s.log.resources.all
	if resource != "" {
		r := s.log.resources.findName(resource)
		if r == nil {
			return nil, fmt.Errorf("list objects: no resource %q is served", resource)
		}
		resources = []*Resource{r}
	}
	seen := map[*version]bool{} // the versions of a kind share their objects
	for _, r := range resources {
		if namespace != "" && !r.Namespaced {
			continue
		}
		t := target{resource: r, namespace: namespace}
		s.log.collectionLocked(r).stateLocked(t.prefix(), "", s.log.rv, func(v *version) bool {
			if !seen[v] {
				found = append(found, r.show(v))
			}
			seen[v] = true
			return true
		})
	}
	return found, nil
}

// ResourceVersion returns the version of the last write of any object.
func (s *Server) ResourceVersion() string { return strconv.FormatInt(s.log.current(), 10) }

// take finds the resource of obj and parses it.
func (s *Server) take(obj Object) (target, *object, error) {
	if v := reflect.ValueOf(obj); !v.IsValid() || (v.Kind() == reflect.Pointer && v.IsNil()) {
		return target{}, nil, fmt.Errorf("it is nil (%T)", obj)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	s.log.mu.RLock()
	var r *Resource
	if gvk.Kind != "" {
		r = s.log.resources.findKind(gvk)
	} else {
		r = s.log.resources.findType(obj)
	}
	s.log.mu.RUnlock()
	if r == nil {
		return target{}, nil, fmt.Errorf("no kind %s is served (%T)", gvk, obj)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return target{}, nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	parse := parseObject
	if _, ok := obj.(*unstructured.Unstructured); ok || r.schema != nil {
		// as in a request
		parse = func(data []byte) (*object, error) { return s.parse(r, data) }
	}
	parsed, err := parse(data)
	if err != nil && !runtime.IsStrictDecodingError(err) {
		return target{}, nil, fmt.Errorf("decode %T: %w", obj, err)
	}
	t := target{resource: r, namespace: obj.GetNamespace(), name: obj.GetName()}
	if !r.Namespaced {
		t.namespace = ""
	}
	return t, parsed, nil
}

// give overwrites obj with the stored version.
func give(v *version, obj Object) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.UnmarshalJSON(v.json)
	}
	hadKind := obj.GetObjectKind().GroupVersionKind().Kind != ""
	reflect.ValueOf(obj).Elem().SetZero()
	if err := json.Unmarshal(v.json, obj); err != nil {
		return fmt.Errorf("decode stored object into %T: %w", obj, err)
	}
	if !hadKind { // client-go's typed clients leave it empty too
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return nil
}
