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

// look returns what an update has changed, and looks for objects that the program has changed. It
// reports whether it has compared or copied any: mostly there is no time for it.
func (j *Journal) look(s *seen, now time.Time) (c *change, compared bool) {
	exists := s.kind != Deleted && s.kind != Tombstone
	j.mu.Lock()
	unknown := s.kind == Updated
	if unknown {
		c = j.changed[changeID{s.handler.informer, s.version}].of(s)
		if unknown = c == nil; unknown {
			c = j.managedByLocked(s.managers)
		}
	}
	compared = j.sampled[s.key] > 0 ||
		j.hasTimeLocked(now) && (unknown || exists && len(j.samples) < maxSamples)
	j.mu.Unlock()
	if !compared {
		return c, false
	}
	if unknown {
		c = j.compare(s, c)
	}
	id := sampleID{s.handler.informer, strings.Clone(s.key)}
	j.check(id, notKnown)
	j.unwatch(id)
	if exists {
		j.watch(id, s.obj)
	}
	return c, true
}

// compare returns what an update has changed. Its fields are nil for a Secret, where even the names
// in its data may say too much, for a large object, and while comparisons take too much time.
func (j *Journal) compare(s *seen, managed *change) (c *change) {
	c = managed
	if !s.managers.known || objects.IsSecret(s.obj) || !j.mayCompare(s.obj) {
		return c
	}
	defer j.skip(s.obj)
	start := time.Now()
	var fields []string
	if isSmall(s.before) && isSmall(s.obj) {
		fields = differences(s.before, s.obj)
	}
	c = &change{fields: fields}
	if managed != nil {
		c.managers = managed.managers
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.compared += time.Since(start)
	if len(j.changed) >= maxChanges {
		clear(j.changed)
	}
	id := changeID{s.handler.informer, strings.Clone(s.version)}
	j.changed[id] = knownChange{strings.Clone(s.key), strings.Clone(s.was), c}
	return c
}

// changeID is an update of an informer, and knownChange its content.
type (
	changeID    struct{ informer, version string }
	knownChange struct {
		key, was string
		change   *change
	}
)

// of returns the change if it is that of a call.
func (k knownChange) of(s *seen) *change {
	if k.change == nil || k.key != s.key || k.was != s.was {
		return nil
	}
	return k.change
}

// managedByLocked returns a change by managers, without fields; nil without managers. Programs have
// few.
func (j *Journal) managedByLocked(by managers) *change {
	switch by.n {
	case 0:
		return nil
	case 1:
		c := j.managed[by.names[0]]
		if c == nil {
			if len(j.managed) >= maxNames {
				clear(j.managed)
			}
			name := strings.Clone(by.names[0])
			c = &change{managers: []string{name}}
			j.managed[name] = c
		}
		return c
	}
	c := &change{}
	for _, name := range by.names[:by.n] {
		c.managers = append(c.managers, strings.Clone(name))
	}
	return c
}

func (j *Journal) mayCompare(obj any) bool {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.skipped[reflect.TypeOf(obj)] && j.hasTimeLocked(now)
}

func (j *Journal) hasTimeLocked(now time.Time) bool {
	allowed := now.Sub(j.since) / part
	j.compared = max(j.compared, allowed-saved)
	return j.compared < burst+allowed
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

// managers are those that own a change, the newest first.
type managers struct {
	names [maxCauses]string
	n     int
	known bool // the objects have metadata
}

func managersOf(before, after any) (m managers) {
	from, err := meta.Accessor(before)
	to, err2 := meta.Accessor(after)
	if m.known = err == nil && err2 == nil; m.known {
		m.find(from.GetManagedFields(), to.GetManagedFields())
	}
	return m
}

// find finds the managers of the entries that are new; no manager if there are too many. Times have
// seconds: of two writes within one, the second changes no entry. Then the newest entry shows the
// manager, if it is the only one of its time.
func (m *managers) find(before, after []metav1.ManagedFieldsEntry) {
	if len(before) > maxManaged || len(after) > maxManaged {
		return
	}
	var changed [maxManaged]uint8 // those of after, the newest first
	n, newest, others := 0, -1, 0
	for i := range after {
		at := managedAt(&after[i])
		if newest < 0 || at.After(managedAt(&after[newest])) {
			newest, others = i, 0
		} else if at.Equal(managedAt(&after[newest])) {
			others++
		}
		if i < len(before) && isSameEntry(&before[i], &after[i]) || contains(before, &after[i]) {
			continue
		}
		to := n
		for ; to > 0 && at.After(managedAt(&after[changed[to-1]])); to-- {
			changed[to] = changed[to-1]
		}
		changed[to] = uint8(i)
		n++
	}
	if n == 0 && newest >= 0 && others == 0 {
		changed[0], n = uint8(newest), 1
	}
	for i, at := range changed[:min(n, maxCauses)] {
		name := shortText(after[at].Manager, maxPathRunes)
		if i == 0 || name != m.names[m.n-1] {
			m.names[m.n] = name
			m.n++
		}
	}
}

func managedAt(e *metav1.ManagedFieldsEntry) time.Time {
	if e.Time == nil {
		return time.Time{}
	}
	return e.Time.Time
}

func contains(all []metav1.ManagedFieldsEntry, e *metav1.ManagedFieldsEntry) bool {
	for i := range all {
		if isSameEntry(&all[i], e) {
			return true
		}
	}
	return false
}

func isSameEntry(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource &&
		managedAt(a).Equal(managedAt(b))
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
	if len(s) <= runes {
		return s
	}
	if all := []rune(s); len(all) > runes {
		return string(all[:runes-1]) + "…"
	}
	return s
}
