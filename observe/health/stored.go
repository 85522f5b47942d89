// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/reflector"
)

func (s *search) informer(i Informer) {
	objects := i.store
	if objects == nil && s.kept {
		return
	}
	if objects == nil {
		s.remark("the store of informer %s cannot be read", i.Name)
		return
	}
	if sentence := s.missing(i); i.stores(s.now) {
		s.stale = append(s.stale, sentence) // its lock may be held: a read would wait
		return
	}
	obj, exists, err := objects.GetByKey(s.key)
	switch {
	case err != nil:
		s.remark("the store of informer %s: %s", i.Name, errorText(err))
	case exists:
		s.stored(i, obj)
	case !i.Started:
		s.add(Unsynced, "informer %s was not started, so it has no objects", i.Name)
	case !i.Synced:
		s.add(Unsynced, "informer %s is %s and has no list yet%s", i.Name, i.Phase,
			s.lastError(i))
	default:
		s.others = append(s.others, i)
	}
	switch sentence := s.missing(i); {
	case sentence != "" && exists:
		s.old = append(s.old, sentence)
	case sentence != "":
		s.stale = append(s.stale, sentence)
	case exists:
		s.fresh = true
	}
}

// stores reports whether the informer has been storing one change, or one batch, for long.
func (i Informer) stores(now time.Time) bool {
	return i.StoringSince != nil && now.Sub(*i.StoringSince) >= longCall
}

// lastError returns the last error of an informer with its age, unless it backs off for it.
func (s *search) lastError(i Informer) string {
	if i.LastError == "" || i.Phase == reflector.BackingOff || i.LastErrorTime == nil {
		return withColon(i.LastError)
	}
	return fmt.Sprintf("; an error %s ago: %s", short(s.now.Sub(*i.LastErrorTime)), i.LastError)
}

// missing says why the store of an informer is known to miss changes, if it does; or "".
func (s *search) missing(i Informer) string {
	switch {
	case i.Stopped:
		return fmt.Sprintf("informer %s has stopped: it gets no more changes", i.Name)
	case i.TransformingSince != nil && s.now.Sub(*i.TransformingSince) >= longCall:
		return fmt.Sprintf("informer %s has been in its transform function for %s: its store has "+
			"no later changes", i.Name, short(s.now.Sub(*i.TransformingSince)))
	case i.stores(s.now):
		return fmt.Sprintf("informer %s has been storing changes for %s: its store, a key or an "+
			"index function may hold it up", i.Name, short(s.now.Sub(*i.StoringSince)))
	case i.Synced && i.ConsecutiveFailures > 0:
		return fmt.Sprintf("informer %s may be old: %s in a row, the last one %s", i.Name,
			plural(i.ConsecutiveFailures, "failure"), i.LastError)
	}
	return ""
}

// stored says how far an object of the store has come.
func (s *search) stored(i Informer, obj any) {
	s.has = true
	at, version := "", ""
	if object, err := meta.Accessor(obj); err == nil {
		version = printable.Short(object.GetResourceVersion())
		at = " at resourceVersion " + version
		if object.GetDeletionTimestamp() != nil {
			at += ", is being deleted"
		}
	}
	s.versions[i.Name] = append(s.versions[i.Name], version)
	behind := false
	for _, h := range i.Handlers {
		if h.Pending > 0 {
			behind = true
			age := time.Duration(h.OldestPendingSeconds * float64(time.Second))
			s.add(Behind, "informer %s has %s%s, and its handler %s is %s behind, the oldest "+
				"for %s: that of %[2]s may be one of them", i.Name, s.text, at, h.Name,
				plural(h.Pending, "call"), short(age))
		}
	}
	switch {
	case behind:
	case len(i.Handlers) == 0:
		s.add(Handled, "informer %s, which has no handler, has %s%s", i.Name, s.text, at)
	default:
		s.add(Handled, "informer %s has %s%s, its handlers were called", i.Name, s.text, at)
	}
}

// knowsNothing reports whether all that was found is that informers may lack the key.
func (s *search) knowsNothing() bool {
	for reason := range s.found {
		if reason != Stale && reason != Unsynced {
			return false
		}
	}
	return len(s.found) == 0 || !s.has && len(s.others) > 0
}

func (s *search) unknown() {
	if s.kept {
		s.add(Unknown, "neither a queue nor a reason has %s, and a recording has no stores", s.text)
		if s.cut {
			s.remark("the recording has only the first keys of long lists")
		}
		return
	}
	if len(s.others) == 0 {
		for _, sentence := range s.waits { // its informers may be made when it leads
			s.add(Unknown, "%s", sentence)
		}
		s.waits = nil
		s.add(Unknown, "nothing is known of %s: no informer with a store was found", s.text)
		return
	}
	absent := "it does not exist, has not arrived yet, "
	if by := leftOutBy(s.others); by == "" {
		absent += "or is of a kind without an informer"
	} else {
		absent += "is of a kind without an informer, or is left out by " + by
	}
	s.add(Unknown, "no informer has %s (%s): %s", s.text, strings.Join(s.otherNames(), ", "),
		absent)
	s.otherNamespaces()
}

// otherNames returns the names of the informers without the key, with their selections.
func (s *search) otherNames() (names []string) {
	for _, i := range s.others {
		names = append(names, i.nameAndSelection())
	}
	return names
}

// leftOutBy says what in the selections of informers may leave an object out; "" if nothing may.
func leftOutBy(informers []Informer) string {
	has := func(what func(informer.Collection) bool) bool {
		return slices.ContainsFunc(informers, func(i Informer) bool { return what(i.selection) })
	}
	const selector, namespace = "a selector", "a namespace"
	selects := has(func(c informer.Collection) bool {
		return c.LabelSelector != "" || c.FieldSelector != ""
	})
	isIn := has(func(c informer.Collection) bool { return c.Namespace != "" })
	switch {
	case slices.ContainsFunc(informers, func(i Informer) bool { return i.Selection == "" }):
		return selector + " or " + namespace + " (not known of all informers)"
	case selects && isIn:
		return selector + " or " + namespace
	case selects:
		return selector
	case isIn:
		return namespace
	}
	return ""
}

// otherNamespaces adds the keys with the same name. They come before informers that may lack a key
// without a namespace: it is rather one of them. It lists all keys, so only the last look does.
func (s *search) otherNamespaces() {
	if !s.last {
		return
	}
	_, name, namespaced := strings.Cut(s.key, "/")
	if !namespaced {
		name = s.key
	}
	var same []string
	for _, i := range s.others {
		for _, key := range i.store.ListKeys() {
			if text := keyText(key); len(same) < maxSameName &&
				strings.HasSuffix(key, "/"+name) && !slices.Contains(same, text) {
				same = append(same, text)
			}
		}
	}
	switch keys := strings.Join(same, ", "); {
	case keys == "":
	case namespaced:
		s.add(Unknown, "this name exists in another namespace: %s", keys)
	default:
		s.add(Unknown, "this name exists in a namespace: %s", keys)
		for _, reason := range []Reason{Stale, Unsynced} {
			s.found[Unknown] = append(s.found[Unknown], s.found[reason]...)
			delete(s.found, reason)
		}
	}
}
