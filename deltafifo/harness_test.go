// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/store"
)

// The implementations that run the same tests.
const (
	ours     = transcript.Ours
	clientGo = "client-go"
)

// kind is the kind of queue that a test uses.
type kind struct {
	real                      bool // RealFIFO
	known                     bool // has KnownObjects
	replaced                  bool // EmitDeltaTypeReplaced
	transform                 bool
	atomic, unlock, bookmarks bool
	losing                    bool // the transformer loses the key of ns/e
}

// world is one queue, the objects that its consumer knows, and a consumer that applies deltas to
// them as an informer does.
type world struct {
	t     testing.TB
	queue QueueWithBatch // PopBatch of a queue without batches panics
	known *knownObjects
	laws  func(testing.TB)
	log   *narrate.Log // of the pops, or nil

	failing map[string]bool // keys for which the transformer fails
	losing  map[string]bool // keys for which the transformer returns an object without a key
}

func newWorld(t testing.TB, impl string, k kind) *world {
	w := &world{t: t, known: &knownObjects{objs: map[string]any{}}, laws: func(testing.TB) {},
		failing: map[string]bool{}, losing: map[string]bool{}}
	var known KeyListerGetter
	if k.known {
		known = w.known
	}
	var transform store.TransformFunc
	if k.transform {
		transform = w.transform
	}
	switch {
	case impl == ours && k.real:
		q := NewRealFIFO(Options{
			KnownObjects: known, Transformer: transform, AtomicEvents: k.atomic,
			UnlockWhileProcessing: k.unlock, EmitDeltaTypeBookmark: k.bookmarks,
		})
		w.queue, w.laws = q, q.checkLaws
	case impl == ours:
		q := NewDeltaFIFO(Options{
			KnownObjects: known, EmitDeltaTypeReplaced: k.replaced, Transformer: transform,
		})
		w.queue, w.laws = unbatched{q}, q.checkLaws
	case impl == clientGo && k.real:
		w.queue = reference{limitBatches(cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			KnownObjects: known, Transformer: cache.TransformFunc(transform),
			AtomicEvents: k.atomic, UnlockWhileProcessing: k.unlock,
			EmitDeltaTypeBookmark: k.bookmarks,
		}))}
	case impl == clientGo:
		w.queue = reference{cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
			KnownObjects: known, EmitDeltaTypeReplaced: k.replaced,
			Transformer: cache.TransformFunc(transform),
		})}
	case impl == naive:
		w.queue = newModel(k, known, transform)
	default:
		t.Fatalf("no implementation %q", impl)
	}
	return w
}

// both runs a test on ours and on client-go.
func both(t *testing.T, k kind, test func(t *testing.T, w *world)) {
	for _, impl := range []string{ours, clientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			w := newWorld(t, impl, k)
			defer w.bound()()
			test(t, w)
			w.laws(t)
		})
	}
}

// do applies operations, as a transcript spells them.
func (w *world) do(ops ...operation) {
	for _, op := range ops {
		w.step(op, kind{})
	}
}

func op(name string, args ...string) operation { return operation{name, args} }

func (w *world) transform(obj any) (any, error) {
	o := obj.(*metav1.PartialObjectMetadata)
	key := o.Namespace + "/" + o.Name
	switch {
	case w.failing[key]:
		return nil, errors.New("transform failed")
	case w.losing[key]:
		return "keyless " + key, nil
	}
	o = o.DeepCopy()
	o.ResourceVersion += "t" // shows how often it was called
	return o, nil
}

// object returns an object for "namespace/name" at a resourceVersion.
func object(key, rv string) *metav1.PartialObjectMetadata {
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		panic(err)
	}
	return &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: rv},
	}
}

func objects(keys ...string) []any {
	objs := []any{}
	for _, key := range keys {
		objs = append(objs, parseObject(key))
	}
	return objs
}

// parseObject reads ns/name@rv. A word without @ is returned as a string, which has no key.
func parseObject(word string) any {
	key, rv, ok := strings.Cut(word, "@")
	if !ok {
		return word
	}
	return object(key, rv)
}

// pop pops one item, applies it to the known objects, and describes it.
func (w *world) pop() string {
	defer w.bound()()
	var got string
	_, err := w.queue.Pop(func(obj any, initial bool) error {
		got = w.consume(obj.(Deltas), initial)
		return nil
	})
	if err != nil {
		return describeError(err)
	}
	return got
}

// bound closes the queue after a while: a Pop of an item that was lost fails, and does not hang
// until the timeout of all tests. If that does not help, the tests end.
func (w *world) bound() (stop func()) {
	lost := time.AfterFunc(10*time.Second, w.queue.Close)
	hangs := time.AfterFunc(20*time.Second, func() {
		panic(w.t.Name() + ": the queue hangs, although it is closed")
	})
	return func() {
		lost.Stop()
		hangs.Stop()
	}
}

// popBatch is pop for a batch.
func (w *world) popBatch() string {
	defer w.bound()()
	var got []string
	err := w.queue.PopBatch(func(deltas []Delta, initial bool) error {
		for _, d := range deltas {
			got = append(got, w.consume(Deltas{d}, initial))
		}
		return nil
	}, func(obj any, initial bool) error {
		got = append(got, "single "+w.consume(obj.(Deltas), initial))
		return nil
	})
	if err != nil {
		return describeError(err)
	}
	return strings.Join(got, "\n")
}

func (w *world) consume(deltas Deltas, initial bool) string {
	for _, d := range deltas {
		w.known.apply(d)
	}
	text := describe(deltas)
	if initial {
		text += " (first list)"
	}
	w.log.Event("queue", "Pop %s", text)
	return text
}

// drain pops everything. The queue must be closed.
func (w *world) drain() []string {
	var all []string
	for {
		got := w.pop()
		if got == "closed" {
			return all
		}
		all = append(all, got)
	}
}

func describe(deltas Deltas) string {
	switch o := deltas[0].Object.(type) {
	case ReplacedAllInfo:
		words := []string{"replacedall rv=" + o.ResourceVersion + ":"}
		for _, obj := range o.Objects {
			words = append(words, describeObject(obj))
		}
		return strings.Join(words, " ")
	case SyncAllInfo:
		return "syncall"
	case BookmarkInfo:
		return "bookmark " + o.ResourceVersion
	}
	words := []string{keyForMessage(deltas[0].Object) + ":"}
	for _, d := range deltas {
		word := strings.ToLower(string(d.Type))
		switch o := d.Object.(type) {
		case *metav1.PartialObjectMetadata:
			word += "@" + o.ResourceVersion
		case store.DeletedFinalStateUnknown:
			word += "(tombstone " + describeObject(o.Obj) + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func describeObject(obj any) string {
	if o, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return keyForMessage(o) + "@" + o.ResourceVersion
	}
	return fmt.Sprint(obj)
}

func keyForMessage(obj any) string {
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return fmt.Sprint(obj)
	}
	return key
}

func describeError(err error) string {
	var ourKeyError store.KeyError
	var theirKeyError cache.KeyError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrFIFOClosed), errors.Is(err, cache.ErrFIFOClosed):
		return "closed"
	case errors.As(err, &ourKeyError), errors.As(err, &theirKeyError):
		return "error: no key"
	case strings.Contains(err.Error(), "transform failed"):
		return "error: transform failed"
	}
	return "error: " + err.Error()
}

// knownObjects holds the objects that a consumer knows. It lists them in a fixed order.
type knownObjects struct {
	mu      sync.Mutex
	objs    map[string]any
	failing bool // GetByKey fails
	hiding  bool // GetByKey finds nothing
}

func (k *knownObjects) ListKeys() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.objs))
}

func (k *knownObjects) GetByKey(key string) (any, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failing {
		return nil, false, errors.New("lookup failed")
	}
	obj, ok := k.objs[key]
	return obj, ok && !k.hiding, nil
}

func (k *knownObjects) set(obj any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objs[keyForMessage(obj)] = obj
}

func (k *knownObjects) apply(d Delta) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch d.Type {
	case Added, Updated, Replaced, Sync:
		if key, err := store.MetaNamespaceKeyFunc(d.Object); err == nil {
			k.objs[key] = d.Object
		}
	case Deleted:
		delete(k.objs, keyForMessage(d.Object))
	case ReplacedAll:
		clear(k.objs)
		for _, obj := range d.Object.(ReplacedAllInfo).Objects {
			k.objs[keyForMessage(obj)] = obj
		}
	}
}

// unbatched makes a DeltaFIFO fit the harness.
type unbatched struct{ *DeltaFIFO }

func (unbatched) PopBatch(ProcessBatchFunc, PopProcessFunc) error {
	panic("a DeltaFIFO has no batches")
}
