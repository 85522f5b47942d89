// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// shown returns a version as the resource shows it, or nil for nil.
func (t target) shown(v *version) *object {
	if v == nil {
		return nil
	}
	return t.resource.show(v).object
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

// A write takes these steps, for a new object and for a change of one:
//
//	decode     the body becomes an object, with schema defaults  decode.go, patch.go, schema.go
//	default    its missing values, and the managed fields        prepare.go, managed.go
//	admit      its namespace takes new objects                   terminate.go
//	mutate     the hooks that mutate change it                   admission.go
//	prepare    the server's own values                           prepare.go
//	validate   the rules of its kind, then the other hooks       validate.go, admission.go
//	store      it takes the next resourceVersion                 log.go
//
// Only a write that makes a new object needs to be admitted, again before it is stored. A change
// has its resourceVersion compared after mutate. A direct write asks no hook, and needs no
// namespace.
//
// create and update take the steps until mutate, and putLocked takes the others. The lock is held
// from the first read on, but not while a change is computed or hooks are asked: if the stored
// object has changed then, putLocked returns errOvertaken. An update begins again then, with the
// decode of a patch; a create fails, unless it can generate another name.

// errOvertaken says that an object has changed since a write began.
var errOvertaken = errors.New("the object has changed meanwhile")

const generateNameAttempts = 8

// create stores a new object, under a generated name if there is only a generateName.
func (s *Server) create(t target, obj *object, w write) (*version, error) {
	obj.gvk = t.resource.GroupVersionKind()
	if err := matchNamespace(t.resource, t.namespace, &obj.meta); err != nil {
		return nil, err
	}
	s.own(t, obj, nil, w)
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.tickLocked(time.Now())
	if err := s.admitLocked(t, obj, w); err != nil {
		return nil, err
	}
	obj, err := s.mutatedLocked(t, obj, nil, w)
	if err != nil {
		return nil, err
	}
	if obj.meta.Name != "" || obj.meta.GenerateName == "" {
		v, err := s.putLocked(t, obj, nil, w)
		if errors.Is(err, errOvertaken) {
			err = s.existsLocked(t, obj)
		}
		return v, err
	}
	for range generateNameAttempts {
		attempt := obj.copy()
		attempt.meta.Name = generateName(obj.meta.GenerateName)
		t.name = attempt.meta.Name
		if v, err := s.putLocked(t, attempt, nil, w); !errors.Is(err, errOvertaken) {
			return v, err
		}
	}
	return nil, apierrors.NewGenerateNameConflict(t.resource.GroupResource(), t.name, 1)
}

// existsLocked is the error for the create of an object that exists.
func (s *Server) existsLocked(t target, obj *object) error {
	err := apierrors.NewAlreadyExists(t.resource.GroupResource(), obj.meta.Name)
	t.name = obj.meta.Name
	if s.markedLocked(t) {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// change computes a new object to store from the stored one; old is nil if it does not exist.
type change func(old *version) (*object, error)

// update replaces an object with what next makes of it. uid, if not empty, must be that of the
// stored object. It reports whether the object was created.
func (s *Server) update(t target, uid types.UID, w write, next change) (*version, bool, error) {
	for {
		v, created, err := s.updateOnce(t, uid, w, next)
		if !errors.Is(err, errOvertaken) {
			return v, created, err
		}
		if !w.direct {
			if err := w.by.http.Context().Err(); err != nil {
				return nil, false, err
			}
		}
	}
}

func (s *Server) updateOnce(t target, uid types.UID, w write,
	next change) (*version, bool, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.tickLocked(time.Now())
	old := s.log.collectionLocked(t.resource).get(t.key())
	if old == nil && (t.subresource != "" || !(t.resource.createOnUpdate || w.apply)) {
		return nil, false, t.notFound()
	}
	if err := checkUID(t, uid, old); err != nil {
		return nil, false, err
	}
	var obj *object
	err := s.unlocked(func() (err error) { // a patch may take long
		obj, err = s.computed(t, old, w, next)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if old == nil {
		if err := s.mayCreateLocked(t, obj, w); err != nil {
			return nil, false, err
		}
	}
	if obj, err = s.mutatedLocked(t, obj, old, w); err != nil {
		return nil, false, err
	}
	if obj.meta.Name != t.name {
		return nil, false, apierrors.NewBadRequest(fmt.Sprintf(
			"admission has changed the name %q to %q", t.name, obj.meta.Name))
	}
	if old == nil {
		obj.meta.ResourceVersion = ""
	} else if err := checkVersion(t, obj, old.rv); err != nil {
		return nil, false, err
	}
	v, err := s.putLocked(t, obj, old, w)
	return v, old == nil && err == nil, err
}

// computed returns the object that an update would store if there were no admission.
func (s *Server) computed(t target, old *version, w write, next change) (*object, error) {
	obj, err := next(t.resource.show(old))
	if err != nil {
		return nil, err
	}
	obj.gvk = t.resource.GroupVersionKind()
	if old == nil {
		obj.meta.ResourceVersion = ""
	}
	if t.subresource != "scale" { // its Scale was tracked
		s.own(t, obj, t.shown(old), w)
	}
	return obj, nil
}

// unlocked calls a function, which may panic, without the lock.
func (s *Server) unlocked(call func() error) error {
	s.log.mu.Unlock()
	defer s.log.mu.Lock()
	return call()
}

// mayCreateLocked refuses an update that would create an object.
func (s *Server) mayCreateLocked(t target, obj *object, w write) error {
	if !w.direct {
		if err := w.by.mayCreateLocked(); err != nil {
			return err
		}
	}
	return s.admitLocked(t, obj, w)
}

// putLocked takes the steps of a write from prepare to store. old is the version that obj replaces,
// or nil.
func (s *Server) putLocked(t target, obj *object, old *version, w write) (*version, error) {
	r, was := t.resource, t.shown(old)
	sent, _ := strconv.ParseUint(obj.meta.ResourceVersion, 10, 63) // 0: none, or no version
	// prepare
	w.by.singleOwners(&obj.meta)
	if old == nil {
		t.name = obj.meta.Name
		r.prepareForCreate(obj, w.direct)
	} else {
		r.prepareForUpdate(obj, was, t.subresource)
	}
	if err := w.by.byUserLocked(obj, was); err != nil {
		return nil, err
	}
	// validate
	if err := r.accept(obj, was, t.subresource); err != nil {
		return nil, err
	}
	if old == nil && sent > 0 && !w.dryRun {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if err := s.validatedLocked(t, obj, old, w); err != nil {
		return nil, err
	}
	// store
	c := s.log.collectionLocked(r)
	switch {
	case !s.log.servesLocked(r):
		return nil, genericError(http.StatusNotFound)
	case c.get(t.key()) != old:
		return nil, errOvertaken
	case old != nil:
		v, err := s.replaceLocked(c, t, old, obj, w)
		s.settleLocked(t)
		return v, err
	}
	if err := s.admitLocked(t, obj, w); err != nil {
		return nil, err
	}
	if w.dryRun {
		return c.dryVersion(obj, int64(sent))
	}
	return s.storeLocked(c, obj)
}

// storeLocked commits obj, with the effects of a CustomResourceDefinition and of a cluster role.
func (s *Server) storeLocked(c *collection, obj *object) (*version, error) {
	if c.resource.isDefinitions() {
		if err := s.defineLocked(obj, c.get(obj.meta.Name)); err != nil {
			return nil, err
		}
	}
	v, err := s.log.commitLocked(c, obj)
	s.aggregateLocked(c)
	return v, err
}

// dryVersion is the answer to a dry run.
func (c *collection) dryVersion(obj *object, rv int64) (*version, error) {
	enc, err := obj.encode(rv)
	return &version{encoded: enc, rv: rv, resource: c.resource, object: obj,
		namespace: obj.meta.Namespace, name: obj.meta.Name}, err
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
