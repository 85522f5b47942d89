// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// target names the object of a request.
type target struct {
	resource        *Resource
	subresource     string
	namespace, name string
}

func (t target) key() string { return objectKey(t.namespace, t.name) }

func (t target) notFound() error {
	return apierrors.NewNotFound(t.resource.GroupResource(), t.name)
}

// target names the object of a version, in the form in which it is stored.
func (v *version) target() target {
	return target{resource: v.resource, namespace: v.namespace, name: v.name}
}

// write holds the options of a write.
type write struct {
	dryRun  bool
	direct  bool   // called by the test, not through HTTP: no admission, status is kept
	manager string // gets the changed fields; "" leaves the managed fields as they are
	// a server-side apply: the managed fields are changed already; an absent object is created
	apply  bool
	by     *call   // the request; nil for a direct write
	review *review // by admission hooks, or nil
}

const generateNameAttempts = 8

// create stores a new object, under a generated name if there is only a generateName.
func (s *Server) create(t target, obj *object, w write) (*version, error) {
	obj.gvk = t.resource.GroupVersionKind()
	if err := matchNamespace(t.resource, t.namespace, &obj.meta); err != nil {
		return nil, err
	}
	s.own(t, obj, nil, w)
	obj, err := s.mutatedNew(t, obj, w)
	if err != nil {
		return nil, err
	}
	w.by.singleOwners(&obj.meta)
	if obj.meta.Name != "" || obj.meta.GenerateName == "" {
		return s.createNamed(t, obj, w)
	}
	var name string
	for range generateNameAttempts {
		attempt := obj.copy()
		name = generateName(obj.meta.GenerateName)
		attempt.meta.Name = name
		if v, err := s.createNamed(t, attempt, w); !apierrors.IsAlreadyExists(err) {
			return v, err
		}
	}
	return nil, apierrors.NewGenerateNameConflict(t.resource.GroupResource(), name, 1)
}

func (s *Server) createNamed(t target, obj *object, w write) (*version, error) {
	r := t.resource
	sent, _ := strconv.ParseUint(obj.meta.ResourceVersion, 10, 63) // 0: none, or no version
	r.prepareForCreate(obj, w.direct)

	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.tickLocked(time.Now())
	if !w.direct {
		if err := s.admitLocked(t, obj.meta.GenerateName); err != nil {
			return nil, err
		}
	}
	if err := r.accept(obj, nil, ""); err != nil {
		return nil, err
	}
	if sent > 0 && !w.dryRun {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if err := s.validatedNewLocked(t, obj, w); err != nil {
		return nil, err
	}
	c := s.log.collectionLocked(r)
	if !s.log.servesLocked(r) {
		return nil, genericError(http.StatusNotFound)
	}
	if old := c.get(objectKey(obj.meta.Namespace, obj.meta.Name)); old != nil {
		err := apierrors.NewAlreadyExists(r.GroupResource(), obj.meta.Name)
		if old.object.meta.DeletionTimestamp != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if w.dryRun {
		return c.dryVersion(obj, int64(sent))
	}
	return s.storeLocked(c, obj)
}

// own fills in the defaults of an object, and notes which fields are the writer's: these, but not
// those that admission or the server sets later.
func (s *Server) own(t target, obj, old *object, w write) {
	if t.resource.isNamespaces() {
		labelNamespace(obj)
	}
	if t.subresource != "status" {
		t.resource.rules.fill(obj)
	}
	s.track(t, obj, old, w)
}

// storeLocked commits obj, and serves the kind that it defines if it is a CustomResourceDefinition.
func (s *Server) storeLocked(c *collection, obj *object) (*version, error) {
	if c.resource.isDefinitions() {
		if err := s.defineLocked(obj, c.get(obj.meta.Name)); err != nil {
			return nil, err
		}
	}
	return s.log.commitLocked(c, obj)
}

// dryVersion is the answer to a dry run.
func (c *collection) dryVersion(obj *object, rv int64) (*version, error) {
	enc, err := obj.encode(rv)
	return &version{encoded: enc, rv: rv, resource: c.resource, object: obj,
		namespace: obj.meta.Namespace, name: obj.meta.Name}, err
}

// mutation computes a new object to store from the stored one; old is nil if it does not exist.
type mutation func(old *version) (*object, error)

// errOvertaken says that an object has changed while its update was computed or reviewed.
var errOvertaken = errors.New("the object has changed meanwhile")

// update replaces an object with the result of mutate. uid, if not empty, must be that of the
// stored object. It reports whether the object was created.
func (s *Server) update(t target, uid types.UID, w write, mutate mutation) (*version, bool, error) {
	for {
		v, created, err := s.updateOnce(t, uid, w, mutate)
		if !errors.Is(err, errOvertaken) {
			return v, created, err
		}
	}
}

func (s *Server) updateOnce(t target, uid types.UID, w write,
	mutate mutation) (*version, bool, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.tickLocked(time.Now())
	c := s.log.collectionLocked(t.resource)
	old := c.get(t.key())
	creates := t.subresource == "" && (t.resource.createOnUpdate || w.apply)
	if old == nil && !creates {
		return nil, false, t.notFound()
	}
	if err := checkUID(t, uid, old); err != nil {
		return nil, false, err
	}
	if old == nil {
		v, err := s.createByUpdateLocked(c, t, w, mutate)
		return v, err == nil, err
	}
	shown := t.resource.show(old)
	obj, err := s.computedLocked(t, old, w, func() (*object, error) {
		obj, err := mutate(shown)
		if err == nil && t.subresource != "scale" { // its Scale was tracked
			obj.gvk = t.resource.GroupVersionKind()
			s.own(t, obj, shown.object, w)
		}
		return obj, err
	})
	if err != nil {
		return nil, false, err
	}
	obj.gvk = t.resource.GroupVersionKind()
	if obj, err = s.mutatedLocked(t, obj, old, w); err != nil {
		return nil, false, err
	}
	w.by.singleOwners(&obj.meta)
	if err := checkVersion(t, obj, old.rv); err != nil {
		return nil, false, err
	}
	t.resource.prepareForUpdate(obj, shown.object, t.subresource)
	if err := t.resource.accept(obj, shown.object, t.subresource); err != nil {
		return nil, false, err
	}
	if err := s.validatedLocked(t, obj, old, w); err != nil {
		return nil, false, err
	}
	v, err := s.replaceLocked(c, t, old, obj, w)
	s.settleLocked(t)
	return v, false, err
}

// replaceLocked stores obj in place of old. An update that changes nothing is not stored. An update
// that removes the last finalizer of an object marked as deleted deletes it.
func (s *Server) replaceLocked(c *collection, t target, old *version, obj *object,
	w write) (*version, error) {
	before, after := &old.object.meta, &obj.meta
	grace := before.DeletionGracePeriodSeconds
	finished := before.DeletionTimestamp != nil && len(after.Finalizers) == 0 &&
		len(obj.specFinalizers()) == 0 && (grace == nil || *grace == 0)
	keepTimes(obj, old)
	answer, err := c.dryVersion(obj, old.rv)
	if err != nil {
		return nil, err
	}
	switch {
	case w.dryRun:
		return answer, nil
	case finished:
		s.removeLocked(c, old)
		return answer, nil
	case string(answer.json) == string(old.json):
		return old, nil
	}
	return s.storeLocked(c, obj)
}

func (s *Server) createByUpdateLocked(c *collection, t target, w write,
	mutate mutation) (*version, error) {
	obj, err := s.computedLocked(t, nil, w, func() (*object, error) {
		obj, err := mutate(nil)
		if err == nil {
			obj.gvk = t.resource.GroupVersionKind()
			obj.meta.ResourceVersion = ""
			s.own(t, obj, nil, w)
		}
		return obj, err
	})
	if err != nil {
		return nil, err
	}
	if !w.direct {
		if err := w.by.mayCreateLocked(); err != nil {
			return nil, err
		}
		if err := s.admitLocked(t, ""); err != nil {
			return nil, err
		}
	}
	if !s.log.servesLocked(t.resource) {
		return nil, genericError(http.StatusNotFound)
	}
	if obj, err = s.mutatedLocked(t, obj, nil, w); err != nil {
		return nil, err
	}
	w.by.singleOwners(&obj.meta)
	obj.meta.ResourceVersion = ""
	t.resource.prepareForCreate(obj, w.direct)
	if err := t.resource.accept(obj, nil, ""); err != nil {
		return nil, err
	}
	if err := s.validatedLocked(t, obj, nil, w); err != nil {
		return nil, err
	}
	if w.dryRun {
		return c.dryVersion(obj, 0)
	}
	return s.storeLocked(c, obj)
}

// computedLocked returns what compute makes of a version, and releases the lock meanwhile: a patch
// may take long. If old is not the newest version any more then, it returns errOvertaken.
func (s *Server) computedLocked(t target, old *version, w write,
	compute func() (*object, error)) (obj *object, err error) {
	err = s.unlocked(func() error {
		obj, err = compute()
		return err
	})
	return obj, s.overtakenLocked(t, old, w, err)
}

// unlocked calls a function, which may panic, without the lock.
func (s *Server) unlocked(call func() error) error {
	s.log.mu.Unlock()
	defer s.log.mu.Lock()
	return call()
}

// overtakenLocked returns err, or else an error if old is not the newest version any more, or if a
// new object may not be created any more.
func (s *Server) overtakenLocked(t target, old *version, w write, err error) error {
	switch {
	case err != nil:
		return err
	case !s.log.servesLocked(t.resource):
		return genericError(http.StatusNotFound)
	case s.log.collectionLocked(t.resource).get(t.key()) != old:
		if !w.direct {
			err = w.by.http.Context().Err()
		}
		return cmp.Or(err, errOvertaken)
	case old == nil && !w.direct:
		return s.admitLocked(t, "")
	}
	return nil
}

// checkUID compares the uid that the writer saw, if any, with the stored one. An object that does
// not exist, because it was deleted, has none.
func checkUID(t target, uid types.UID, old *version) error {
	stored := types.UID("")
	if old != nil {
		stored = old.object.meta.UID
	}
	if uid == "" || uid == stored {
		return nil
	}
	return apierrors.NewConflict(t.resource.GroupResource(), t.name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, "+
			"AdditionalErrorMsg: "+
			"Precondition failed: UID in precondition: %s, UID in object meta: %s",
		t.storageKey(), uid, stored))
}

// checkVersion compares the resourceVersion that the writer saw with the stored one. An object
// without one gets the stored version if its kind may be overwritten.
func checkVersion(t target, obj *object, current int64) error {
	seen := obj.meta.ResourceVersion
	if seen == "" || seen == "0" {
		if t.resource.unconditionalUpdate {
			obj.meta.ResourceVersion = strconv.FormatInt(current, 10)
			return nil
		}
		kind := schema.GroupKind{Group: t.resource.Group, Kind: t.resource.Plural}
		return apierrors.NewInvalid(kind, t.name, field.ErrorList{field.Invalid(
			field.NewPath("metadata", "resourceVersion"), uint64(0),
			"must be specified for an update")})
	}
	n, err := strconv.ParseUint(seen, 10, 64)
	if err != nil {
		return err
	}
	if n != uint64(current) {
		return apierrors.NewConflict(t.resource.GroupResource(), t.name, errModified)
	}
	return nil
}

var errModified = errors.New(
	"the object has been modified; please apply your changes to the latest version and try again")

// storageKey is the object's key in etcd, which some error texts show.
func (t target) storageKey() string {
	prefix := "/registry/"
	if !t.resource.builtin {
		prefix += t.resource.Group + "/"
	}
	return prefix + t.resource.Plural + "/" + t.key()
}

// checkPreconditions compares the preconditions of a delete with the stored object.
func checkPreconditions(t target, want *metav1.Preconditions, have *metav1.ObjectMeta) error {
	if want == nil {
		return nil
	}
	if want.UID != nil && *want.UID != have.UID {
		return t.preconditionFailed("UID", string(*want.UID), string(have.UID),
			"The object might have been deleted and then recreated")
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != have.ResourceVersion {
		return t.preconditionFailed("ResourceVersion", *want.ResourceVersion, have.ResourceVersion,
			"The object might have been modified")
	}
	return nil
}

func (t target) preconditionFailed(what, want, have, why string) error {
	if t.resource.isContainer() {
		head := "Precondition failed"
		if t.resource.isDefinitions() {
			head = "precondition failed"
		}
		return apierrors.NewConflict(t.resource.GroupResource(), t.name, fmt.Errorf(
			"%s: %s in precondition: %s, %s in object meta: %s", head, what, want, what, have))
	}
	kind := schema.GroupResource{Group: t.resource.Group, Resource: t.resource.Kind}
	return apierrors.NewConflict(kind, t.name, fmt.Errorf(
		"the %s in the precondition (%s) does not match the %s in record (%s). %s",
		what, want, what, have, why))
}
