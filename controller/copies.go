// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// copies is the part of Writes that knows which copies of objects are old. The mutex of Writes
// guards it.
type copies struct {
	objects map[identity]*known
	swept   time.Time // when what is forgotten was dropped
}

// identity distinguishes an object from its successor of the same name. (A fake server may not set
// UIDs.)
type identity struct {
	uid             types.UID
	namespace, name string
}

// known is what the answers of the server have proved about one object.
type known struct {
	version  string    // older copies are old; "" if no version is known
	refused  bool      // the copy at version is old, too
	deleting bool      // copies without a deletionTimestamp are old
	gone     bool      // every copy is old
	at       time.Time // of the last answer
	sending  int       // the writes of the object that are being sent
	began    time.Time // the newest of them
}

// conflictWait bounds the wait for a newer copy, and for another write. A server may refuse a write
// for another reason, such as a webhook or too many writers; then no newer copy arrives. A client
// may never answer.
const conflictWait = time.Minute

// at returns the facts about an object, for a change by an answer.
func (c *copies) at(id identity, now time.Time) *known {
	if now.Sub(c.swept) >= conflictWait {
		maps.DeleteFunc(c.objects, func(_ identity, k *known) bool {
			return k.sending == 0 && k.over(now)
		})
		c.swept = now
	}
	k := c.objects[id]
	if k == nil {
		k = &known{}
		if c.objects == nil {
			c.objects = map[identity]*known{}
		}
		c.objects[id] = k
	}
	if k.over(now) {
		*k = known{sending: k.sending, began: k.began}
	}
	k.at = now
	return k
}

// begin counts a write as one that is being sent, or returns why it is held back.
func (c *copies) begin(write Write, now time.Time) error {
	id := identityOf(write.Copy)
	if k := c.objects[id]; k != nil {
		deleted := (k.gone || k.deleting) && k.old(write.Copy, now)
		switch {
		case deleted, write.Locked && k.old(write.Copy, now):
			return &staleError{fmt.Errorf("the copy of %v at resourceVersion %q is known to be old",
				id, write.Copy.GetResourceVersion())}
		case write.Locked && k.sending > 0 && now.Sub(k.began) < conflictWait:
			return &staleError{fmt.Errorf("another write of %v is being sent", id)}
		}
		k.sending, k.began = k.sending+1, now
		return nil
	}
	k := c.at(id, now)
	k.at = time.Time{} // no answer yet
	k.sending, k.began = 1, now
	return nil
}

// answered learns from the answer to a create, an update or a patch.
func (c *copies) answered(answer metav1.Object, now time.Time) {
	id := identityOf(answer)
	k := c.at(id, now)
	if isVersion(answer.GetResourceVersion()) {
		k.learn(answer.GetResourceVersion(), false)
	}
	// An update that takes the last finalizer from a deleted object removes it. A Namespace, which
	// has finalizers in its spec, has no grace period.
	grace := answer.GetDeletionGracePeriodSeconds()
	k.gone = k.gone || id.uid != "" && answer.GetDeletionTimestamp() != nil &&
		len(answer.GetFinalizers()) == 0 && grace != nil && *grace == 0
}

// deleted learns that a delete was accepted. Finalizers may keep the object. Without a UID, a
// successor could not be distinguished.
func (c *copies) deleted(id identity, now time.Time) {
	if id.uid != "" {
		c.at(id, now).deleting = true
	}
}

func (c *copies) stale(obj metav1.Object, now time.Time) bool {
	k := c.objects[identityOf(obj)]
	return k != nil && k.old(obj, now)
}

func (k *known) over(now time.Time) bool { return now.Sub(k.at) >= conflictWait }

// learn takes the newer of two versions, or the last if they have no order.
func (k *known) learn(version string, refused bool) {
	if version != "" && !older(version, k.version) {
		k.version, k.refused = version, refused
	}
}

func (k *known) old(obj metav1.Object, now time.Time) bool {
	version := obj.GetResourceVersion()
	return !k.over(now) && (k.gone || k.deleting && obj.GetDeletionTimestamp() == nil ||
		older(version, k.version) || k.refused && version == k.version)
}

func identityOf(obj metav1.Object) identity {
	return identity{obj.GetUID(), obj.GetNamespace(), obj.GetName()}
}

func (i identity) String() string { return i.namespace + "/" + i.name }

// isOld excludes the conflicts of managers of fields, and those of other objects, such as a
// ResourceQuota: a newer copy does not end them.
func isOld(err error, id identity) bool {
	return apierrors.IsConflict(err) && isAbout(err, id) &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// isAbout reports whether an error of the server names the object.
func isAbout(err error, id identity) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Details != nil && status.ErrStatus.Details.Name == id.name
}

func isVersion(text string) bool {
	_, err := resourceversion.CompareResourceVersion(text, text)
	return err == nil
}

// older reports whether a is known to be older than b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
