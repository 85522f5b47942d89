// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"time"

	"example.com/informerstack/informer/served"
	"example.com/informerstack/internal/helpers/printable"
)

// Kind is a kind that informers follow, on the page: see package served.
type Kind struct {
	Resource string       `json:"resource"`
	Version  string       `json:"version"`
	Phase    served.Phase `json:"phase"`
	Reason   string       `json:"reason,omitempty"`
	Since    *time.Time   `json:"since,omitempty"`
	// Informers is the number of informers that follow the kind, Required that of those that need
	// it.
	Informers int `json:"informers"`
	Required  int `json:"required,omitempty"`
}

// AddKinds adds the kinds that informers follow to the page. Why names those that are not served.
// The returned function removes them.
func (h *Handler) AddKinds(subject interface{ Status() []served.Status }) (remove func()) {
	return add(h, &h.kinds, func(wanted) (kinds []Kind) {
		for _, s := range subject.Status() {
			kinds = append(kinds, Kind{
				Resource: printable.Short(s.Resource.GroupResource().String()),
				Version:  printable.Short(s.Resource.Version), Phase: s.Phase,
				Reason: printable.Short(s.Reason), Since: orNil(s.Since),
				Informers: s.Informers, Required: s.Required,
			})
		}
		return kinds
	})
}

// kindsOf returns the kinds of all that was added.
func (h *Handler) kindsOf(w wanted) []Kind {
	return slices.Concat(each(current(h, &h.kinds), w)...)
}

// isServed reports whether requests for the kind are made.
func (k Kind) isServed() bool { return k.Phase == served.Serving || k.Phase == served.Unwatched }

func (t *text) kinds(all []Kind) {
	if len(all) > 0 {
		t.head("kinds that informers follow")
	}
	for _, k := range all {
		t.line("  %s in %s: %s since %s, informers: %d, required: %d%s", k.Resource, k.Version,
			k.Phase, t.ago(k.Since), k.Informers, k.Required, withColon(k.Reason))
	}
}

// kind says that a kind is not served, so that no informer has its objects.
func (s *search) kind(k Kind) {
	if !k.isServed() {
		s.remark("no informer has objects of %s: %s", k.Resource, k.Reason)
	}
}
