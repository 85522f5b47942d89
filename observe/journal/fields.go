// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"example.com/informerstack/internal/helpers/objects"
)

const (
	maxFields    = 10
	maxPathRunes = 100
	maxChanges   = 256
	// maxManaged bounds the entries of managedFields that are compared. Objects have a few.
	maxManaged = 100

	// Comparisons may take 50 ms, and then one part in 1,000 of the time. Later ones are left out.
	// A second of the time that was not used is kept: a recording may last for months.
	burst = 50 * time.Millisecond
	part  = 1000
	saved = time.Second
)

// changes returns the paths of the fields that differ, and the managers that own the change. Fields
// is nil for a Secret, where even the names in its data may say too much, for a large object, and
// while comparisons take too much time.
func (j *Journal) changes(id changeID, before, after any) (fields, managers []string) {
	j.mu.Lock()
	known, exists := j.changed[id]
	j.mu.Unlock()
	if exists {
		return known.fields, known.managers
	}
	from, err := meta.Accessor(before)
	to, err2 := meta.Accessor(after)
	if err != nil || err2 != nil {
		return nil, nil
	}
	managers = owners(from.GetManagedFields(), to.GetManagedFields())
	if objects.IsSecret(after) || !j.mayCompare(after) {
		return nil, managers
	}
	defer j.skip(after)
	start := time.Now()
	if isSmall(before) && isSmall(after) {
		fields = differences(before, after)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.compared += time.Since(start)
	if len(j.changed) >= maxChanges {
		clear(j.changed)
	}
	j.changed[id] = change{fields, managers}
	return fields, managers
}

// changeID is an update of an informer, and change its fields and managers.
type (
	changeID struct{ informer, key, was, version string }
	change   struct{ fields, managers []string }
)

func (j *Journal) mayCompare(obj any) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	allowed := time.Since(j.since) / part
	j.compared = max(j.compared, allowed-saved)
	return !j.skipped[reflect.TypeOf(obj)] && j.compared < burst+allowed
}

// skip is deferred. It ends a panic of a comparison, and then those of the type: some types of
// fields, such as an array or an error, cannot be compared.
func (j *Journal) skip(obj any) {
	if recover() == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.skipped[reflect.TypeOf(obj)] = true
}

// owners returns the managers of the entries that are new, the newest first; nil if there are too
// many. Times have seconds: of two writes within one, the second changes no entry. Then the newest
// entry shows the manager, if it is the only one of its time.
func owners(before, after []metav1.ManagedFieldsEntry) []string {
	if len(before) > maxManaged || len(after) > maxManaged {
		return nil
	}
	at := func(e *metav1.ManagedFieldsEntry) time.Time {
		if e.Time == nil {
			return time.Time{}
		}
		return e.Time.Time
	}
	sorted := make([]*metav1.ManagedFieldsEntry, len(after)) // the newest first
	for i := range after {
		sorted[i] = &after[i]
	}
	slices.SortStableFunc(sorted, func(a, b *metav1.ManagedFieldsEntry) int {
		return at(b).Compare(at(a))
	})
	changed := slices.DeleteFunc(slices.Clone(sorted), func(e *metav1.ManagedFieldsEntry) bool {
		return slices.ContainsFunc(before, func(old metav1.ManagedFieldsEntry) bool {
			return old.Manager == e.Manager && old.Operation == e.Operation &&
				old.Subresource == e.Subresource && at(&old).Equal(at(e))
		})
	})
	isOnly := len(sorted) == 1 || len(sorted) > 1 && !at(sorted[0]).Equal(at(sorted[1]))
	if len(changed) == 0 && isOnly {
		changed = sorted[:1]
	}
	var names []string
	for _, e := range changed[:min(len(changed), maxCauses)] {
		names = append(names, strings.Clone(shortText(e.Manager, maxPathRunes)))
	}
	return slices.Compact(names)
}

// differences returns the paths of the fields that differ, such as .spec.replicas. A list is one
// field. Those that every write changes are left out: an empty list means that they alone differ.
// It returns nil if the objects cannot be compared. A field that is the same in both, such as an
// enum, may have no JSON once it is zero: then they are compared whole.
func differences(before, after any) (fields []string) {
	defer func() {
		if recover() != nil {
			fields = allDifferences(before, after)
		}
	}()
	return allDifferences(apart(before, after))
}

func allDifferences(before, after any) []string {
	old, err := typedValue(before)
	now, err2 := typedValue(after)
	if err != nil || err2 != nil {
		return nil
	}
	comparison, err := old.Compare(now)
	if err != nil {
		return nil
	}
	fields := []string{}
	for _, set := range []*fieldpath.Set{
		comparison.Added, comparison.Modified, comparison.Removed,
	} {
		set.Leaves().Iterate(func(path fieldpath.Path) {
			text := path.String()
			if text == ".metadata.resourceVersion" || text == ".metadata.generation" ||
				strings.HasPrefix(text, ".metadata.managedFields") {
				return
			}
			fields = append(fields, shortText(text, maxPathRunes))
		})
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	return slices.Clip(fields[:min(len(fields), maxFields)])
}

// typedValue reads an object without a schema: maps have fields, and lists are atomic.
func typedValue(obj any) (*typed.TypedValue, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return typed.DeducedParseableType.FromUnstructured(u.UnstructuredContent())
	}
	return typed.DeducedParseableType.FromStructured(obj)
}

func shortText(s string, runes int) string {
	if all := []rune(s); len(all) > runes {
		return string(all[:runes-1]) + "…"
	}
	return s
}
