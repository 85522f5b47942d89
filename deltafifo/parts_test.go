// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/store"
)

// partsWorld is a queue of parts, a consumer, and a naive twin of what the consumer must hold once
// the queue is empty.
type partsWorld struct {
	t     *testing.T
	queue *Parts
	known *knownObjects
	parts map[string]*partWorld
	rv    int
}

// partWorld is a part, its objects as they were last handed over, and what was handed over when the
// part had so many items: Progress must not claim it earlier.
type partWorld struct {
	world *partsWorld
	part  *Part
	held  map[string]string
	marks map[int]map[string]string
}

func newPartsWorld(t *testing.T) *partsWorld {
	w := &partsWorld{
		t: t, known: &knownObjects{objs: map[string]any{}}, parts: map[string]*partWorld{},
	}
	w.queue = NewParts(Options{KnownObjects: w.known, EmitDeltaTypeReplaced: true},
		partOfKey, func(part string) []string {
			return slices.DeleteFunc(w.known.ListKeys(), func(key string) bool {
				return partOfKey(key) != part
			})
		})
	return w
}

func partOfKey(key string) string {
	part, _, _ := strings.Cut(key, "/")
	return part
}

func (w *partsWorld) add(name string) *partWorld {
	p := &partWorld{world: w, held: map[string]string{}, marks: map[int]map[string]string{}}
	p.part = w.queue.Part(name, p)
	w.parts[name] = p
	return p
}

func (w *partsWorld) remove(name string) {
	w.parts[name].part.Remove()
	delete(w.parts, name)
}

// Queued implements Progress. held is set before the call.
func (p *partWorld) Queued(items int) { p.marks[items] = maps.Clone(p.held) }

// Process implements Progress: what was handed over up to items is known after it.
func (p *partWorld) Process(items, _ int, process func() error) error {
	err := process()
	want, marked := p.marks[items]
	delete(p.marks, items)
	if !marked || err != nil {
		return err
	}
	for key, version := range want {
		obj, exists, _ := p.world.known.GetByKey(key)
		_, isQueued := p.world.queue.items[key]
		require.True(p.world.t, exists || isQueued || p.held[key] == "", "%s is missing", key)
		if exists {
			require.GreaterOrEqual(p.world.t, versionOf(obj), version, key)
		}
	}
	return err
}

func versionOf(obj any) string {
	_, version, _ := strings.Cut(describeObject(obj), "@")
	return version
}

// hand hands one change over.
func (p *partWorld) hand(key string, call func(*Part, any) error, isDeleted bool) {
	p.world.rv++
	version := fmt.Sprintf("%06d", p.world.rv)
	if p.held[key] = version; isDeleted {
		delete(p.held, key)
	}
	require.NoError(p.world.t, call(p.part, object(key, version)))
	p.world.checkLaws()
}

func (p *partWorld) replace(keys ...string) {
	p.world.rv++
	version := fmt.Sprintf("%06d", p.world.rv)
	list, held := []any{}, map[string]string{}
	for _, key := range keys {
		list, held[key] = append(list, object(key, version)), version
	}
	p.held = held
	require.NoError(p.world.t, p.part.Replace(list, version))
	p.world.checkLaws()
}

// pop applies one item to the known objects, and returns its key and types.
func (w *partsWorld) pop() (line string) {
	_, err := w.queue.Pop(func(obj any, isInInitialList bool) error {
		key, _ := w.queue.KeyOf(obj)
		line = key
		for _, d := range obj.(Deltas) {
			line += " " + string(d.Type)
			if w.known.objs[key] = d.Object; d.Type == Deleted {
				delete(w.known.objs, key)
			}
		}
		if isInInitialList {
			line += " (initial)"
		}
		return nil
	})
	require.NoError(w.t, err)
	w.checkLaws()
	return line
}

func (w *partsWorld) popAll() (lines []string) {
	for len(w.queue.queue) > 0 {
		lines = append(lines, w.pop())
	}
	return lines
}

func (w *partsWorld) checkLaws() {
	w.t.Helper()
	w.queue.checkLaws(w.t)
	counts := map[string]int{}
	for _, key := range w.queue.queue {
		counts[partOfKey(key)]++
	}
	for name, p := range w.parts {
		require.Equal(w.t, counts[name], p.part.queued-p.part.popped, "Q3 of %s", name)
	}
	for _, keys := range [][]string{w.queue.queue, w.known.ListKeys()} { // Q2
		for _, key := range keys {
			deltas, isQueued := w.queue.items[key]
			if w.parts[partOfKey(key)] == nil {
				require.True(w.t, isQueued && deltas.Newest().Type == Deleted, "%s stays", key)
			}
		}
	}
}

// checkContent compares the consumer with the twin. The queue is empty.
func (w *partsWorld) checkContent() {
	w.t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for _, p := range w.parts {
		maps.Copy(want, p.held)
	}
	for key, obj := range w.known.objs {
		got[key] = versionOf(obj)
	}
	require.Equal(w.t, want, got)
}

func TestParts_AListConcernsItsPartOnly(t *testing.T) {
	w := newPartsWorld(t)
	a, b := w.add("a"), w.add("b")
	a.replace("a/x", "a/y")
	b.replace("b/x")
	require.NoError(t, w.queue.Replace(nil, ""))
	assert.False(t, w.queue.HasSynced())
	assert.Equal(t, []string{"a/x Replaced (initial)", "a/y Replaced (initial)",
		"b/x Replaced (initial)"}, w.popAll())
	assert.True(t, w.queue.HasSynced())
	b.hand("b/y", (*Part).Add, false)
	a.replace("a/y")
	assert.Equal(t, []string{"b/y Added", "a/y Replaced", "a/x Deleted"}, w.popAll())
	w.checkContent()
}

func TestParts_AddedAgainBehindItsDeletes(t *testing.T) {
	w := newPartsWorld(t)
	require.NoError(t, w.queue.Replace(nil, ""))
	a := w.add("a")
	a.replace("a/x", "a/y")
	w.popAll()
	a.hand("a/z", (*Part).Add, false)
	old := a.part
	w.remove("a")
	for _, err := range []error{
		old.Add(object("a/late", "9")), old.Update(object("a/late", "9")),
		old.Delete(object("a/x", "9")), old.Replace([]any{object("a/late", "9")}, "9"),
	} {
		assert.ErrorIs(t, err, ErrPartRemoved)
	}
	old.Remove()
	w.checkLaws()
	w.add("a").replace("a/x")
	assert.Equal(t, []string{"a/z Added Deleted", "a/x Deleted Replaced", "a/y Deleted"},
		w.popAll())
	w.checkContent()
}

// The list of the queue itself removes what belongs to no part, for example an object that the
// consumer could not delete.
func TestParts_ReplaceDeletesWhatHasNoPart(t *testing.T) {
	w := newPartsWorld(t)
	require.NoError(t, w.queue.Replace(nil, ""))
	a := w.add("a")
	a.replace("a/x")
	w.popAll()
	w.known.objs["again/x"] = object("again/x", "1")
	w.known.objs["gone/x"] = object("gone/x", "1")
	w.add("again") // and has not listed yet
	require.NoError(t, w.queue.Replace(nil, ""))
	assert.Equal(t, []string{"again/x Deleted", "gone/x Deleted"}, w.popAll())
	w.checkContent()
	assert.ErrorContains(t, w.queue.Replace(objects("a/y@2"), ""), `part "a"`)
}

// A resync queues items of a part, and counts them: a list that follows finds their keys, and a
// change that follows does not count as processed too early.
func TestParts_ResyncCounts(t *testing.T) {
	w := newPartsWorld(t)
	require.NoError(t, w.queue.Replace(nil, ""))
	a := w.add("a")
	a.replace("a/x", "a/y")
	w.popAll()
	require.NoError(t, w.queue.Resync())
	a.replace("a/y")
	assert.Equal(t, []string{"a/x Sync Deleted", "a/y Sync Replaced"}, w.popAll())
	w.checkContent()
	require.NoError(t, w.queue.Resync())
	w.popAll()
	a.hand("a/z", (*Part).Add, false)
	assert.Greater(t, a.part.queued, a.part.popped)
	w.popAll()
	w.checkContent()
}

func TestParts_RefusesKeysOfOthers(t *testing.T) {
	w := newPartsWorld(t)
	a := w.add("a")
	for _, err := range []error{
		a.part.Add(object("b/x", "1")), a.part.Delete(object("b/x", "1")),
		a.part.Replace(objects("a/x@1", "b/x@1"), "1"),
	} {
		assert.ErrorContains(t, err, `belongs to part "b"`)
	}
	var keyError store.KeyError
	assert.ErrorAs(t, a.part.Add("no key"), &keyError)
	assert.ErrorAs(t, a.part.Replace([]any{"no key"}, "1"), &keyError)
	assert.Empty(t, w.popAll())
	assert.Panics(t, func() { w.queue.Part("a", a) })
}

// An error of process reaches the part's Progress and the caller of Pop.
func TestParts_ProcessFails(t *testing.T) {
	w := newPartsWorld(t)
	w.add("a").replace("a/x")
	failure := errors.New("full")
	_, err := w.queue.Pop(func(any, bool) error { return failure })
	assert.ErrorIs(t, err, failure)
	w.checkLaws()
}

func TestModel_Parts(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newPartsWorld(t)
		for range 200 {
			name := string(rune('a' + r.IntN(3)))
			key := fmt.Sprintf("%s/%d", name, r.IntN(4))
			p := w.parts[name]
			switch n := r.IntN(10); {
			case n < 4:
				if len(w.queue.queue) > 0 {
					w.pop()
				}
			case p == nil:
				w.add(name)
			case n == 4:
				w.remove(name)
				w.checkLaws()
			case n == 5:
				var keys []string
				for i := range 4 {
					if r.IntN(2) == 0 {
						keys = append(keys, fmt.Sprintf("%s/%d", name, i))
					}
				}
				p.replace(keys...)
			case n == 6 && p.part.listed:
				p.hand(key, (*Part).Delete, true)
			case n == 7 && r.IntN(10) == 0:
				require.NoError(t, w.queue.Replace(nil, ""))
			case n == 8 && r.IntN(4) == 0:
				require.NoError(t, w.queue.Resync())
				w.checkLaws()
			case !p.part.listed: // a reflector lists first
				p.replace(key)
			default:
				p.hand(key, (*Part).Update, false)
			}
		}
		w.popAll()
		w.checkContent()
		require.False(t, t.Failed(), "seed %d", seed)
	}
}
