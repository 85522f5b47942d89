// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// forms are the forms that stories run with. All keep the data of a ConfigMap.
var forms = []struct {
	name string
	form compact.Form
	data func(obj any) map[string]string
}{
	{"compressed", compact.Compressed(),
		func(obj any) map[string]string { return obj.(*corev1.ConfigMap).Data }},
	{"fields", compact.FieldsOf[*corev1.ConfigMap]("data"),
		func(obj any) map[string]string {
			data, err := compact.Get[map[string]string](obj.(*compact.Fields), "data")
			if err != nil {
				panic(err)
			}
			return data
		}},
	{"summary", compact.Summary(summarize),
		func(obj any) map[string]string { return obj.(*configSummary).Data }},
}

// formStories are the stories that run with forms. They do not look into objects.
var formStories = []string{
	"TestStory_InitialListThenLive", "TestStory_CutWatchResumes",
	"TestStory_LostDeleteBecomesTombstone", "TestStory_ResyncIsNotARelist",
	"TestStory_LateHandlerGetsReplay", "TestStory_HandlerSyncsAfterInformer",
	"TestStory_UnseenRecreationIsAnUpdate", "TestStory_BlockedHandlerHarmsOnlyItself",
}

// configSummary is what the last form keeps of a ConfigMap.
type configSummary struct {
	compact.Meta
	Data map[string]string
}

func summarize(c *corev1.ConfigMap) *configSummary { return &configSummary{Data: c.Data} }

// formStory runs script on both queues with each form. Each version of an object has the data
// {"version": its resourceVersion}, which a Transform sets before the object is packed.
func formStory(t *testing.T, script func(w *world, version func(obj any) string, whole bool)) {
	for _, f := range forms {
		version := func(obj any) string { return f.data(obj)["version"] }
		for _, impl := range []string{ours, oursRealFIFO} {
			t.Run("form="+f.name+"/impl="+impl, func(t *testing.T) {
				o := worldOptions{form: f.form, resync: time.Minute}
				o.ours = func(o *Options) { o.Indexers = store.Indexers{"uid": byUID} }
				inBubble(t, impl, o, func(w *world) {
					w.transform = func(obj any) (any, error) {
						c := obj.(*corev1.ConfigMap).DeepCopy()
						c.Data = map[string]string{"version": c.ResourceVersion}
						return c, nil
					}
					script(w, version, f.form.Whole())
				})
			})
		}
	}
}

// byUID needs a whole object.
func byUID(obj any) ([]string, error) { return []string{string(obj.(*corev1.ConfigMap).UID)}, nil }

// F1, F3: the old object of an update has the form of the new one, and is that of the version that
// the store held before. In a resync both are the same object.
func TestForm_OldObjects(t *testing.T) {
	formStory(t, func(w *world, version func(any) string, _ bool) {
		var mu sync.Mutex
		var got []string
		note := func(line string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, line)
		}
		_, err := w.informer.addHandler(ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { note("add " + version(obj)) },
			UpdateFunc: func(oldObj, newObj any) {
				if oldObj == newObj {
					note("resync " + version(newObj))
					return
				}
				note("update " + version(oldObj) + " to " + version(newObj))
			},
			DeleteFunc: func(obj any) {
				if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
					note("tombstone " + version(tombstone.Obj))
					return
				}
				note("delete " + version(obj))
			},
		}, HandlerOptions{})
		require.NoError(w.t, err)
		saw := func(want ...string) {
			w.t.Helper()
			w.settle()
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(w.t, want, got)
			got = nil
		}
		w.create("a")
		w.start()
		saw("add 1")
		w.update("a")
		saw("update 1 to 2")
		w.after(time.Minute + time.Second)
		saw("resync 2")
		w.update("a")
		w.delete("a")
		saw("update 2 to 3", "delete 4")
		w.create("b")
		w.loseDelete("b")
		w.expireWatch()
		w.after(20 * time.Second)
		saw("add 5", "tombstone 5")
	})
}

// F1, F2: readers get objects in the form of the handlers'; two reads of a version are equal.
// Options.Indexers are computed from whole objects. Indexes can be added after the first object
// only if the form keeps whole objects.
func TestForm_Readers(t *testing.T) {
	formStory(t, func(w *world, version func(any) string, whole bool) {
		indexer := w.ours().GetIndexer()
		w.create("a")
		w.start()
		w.update("a")
		obj, exists, err := indexer.GetByKey("ns/a")
		require.NoError(w.t, err)
		require.True(w.t, exists)
		assert.Equal(w.t, "2", version(obj))
		again, _, err := w.ours().GetStore().Get(obj)
		require.NoError(w.t, err)
		assert.Equal(w.t, obj, again)
		values := indexer.ListIndexFuncValues("uid")
		require.Len(w.t, values, 1)
		found, err := indexer.ByIndex("uid", values[0])
		require.NoError(w.t, err)
		assert.Equal(w.t, []any{obj}, found)

		err = w.ours().AddIndexers(store.Indexers{"later": byUID})
		if !whole {
			require.ErrorContains(w.t, err, "indexes were added after the first object")
			return
		}
		require.NoError(w.t, err)
		w.update("a")
		found, err = indexer.ByIndex("later", values[0])
		require.NoError(w.t, err)
		require.Len(w.t, found, 1)
		assert.Equal(w.t, "3", version(found[0]))
	})
}

// A projection as Options.Form of New would give a typed handler other objects than its T.
func TestForm_NewNeedsWholeObjects(t *testing.T) {
	options := Options{Form: forms[1].form}
	const want = "informer: Options.Form keeps a part of each object: use NewProjected"
	assert.PanicsWithValue(t, want,
		func() { New[*corev1.ConfigMap](nil, "configmaps", options) })
}

// F3: in a resync both objects are the same one, even if each read decodes it anew.
func TestForm_ResyncOfLargeObject(t *testing.T) {
	o := worldOptions{form: compact.Compressed(), resync: time.Minute}
	for _, impl := range []string{ours, oursRealFIFO} {
		t.Run("impl="+impl, func(t *testing.T) {
			inBubble(t, impl, o, func(w *world) {
				w.transform = func(obj any) (any, error) {
					c := obj.(*corev1.ConfigMap).DeepCopy()
					c.Data = map[string]string{"large": strings.Repeat("x", 1<<20)}
					return c, nil
				}
				w.create("a")
				w.start()
				w.after(time.Minute + time.Second)
				w.handlerSaw("initial a", "resync a")
				indexer := w.ours().GetIndexer()
				first, _, err := indexer.GetByKey("ns/a")
				require.NoError(w.t, err)
				second, _, err := indexer.GetByKey("ns/a")
				require.NoError(w.t, err)
				assert.NotSame(w.t, first, second)
				assert.Equal(w.t, first, second)
			})
		})
	}
}

// One object that Compressed cannot decode is kept as it is: the informer syncs, and handlers and
// readers get it, after any number of others.
func TestForm_OddObject(t *testing.T) {
	nilValue := map[string][]byte{"key": nil}
	for _, odd := range []int{0, 1, 7} { // its place among the objects
		o := worldOptions{form: compact.Compressed()}
		inBubble(t, ours, o, func(w *world) {
			w.transform = func(obj any) (any, error) {
				c := obj.(*corev1.ConfigMap).DeepCopy()
				if c.Name == "odd" {
					c.BinaryData = nilValue
				}
				return c, nil
			}
			for i := range 8 {
				if i == odd {
					w.create("odd")
				}
				w.create(string(rune('a' + i)))
			}
			w.start()
			w.settle()
			for range 200 { // more than stay decoded
				w.update("a")
			}
			w.settle()
			obj, exists, err := w.ours().GetIndexer().GetByKey("ns/odd")
			require.NoError(w.t, err)
			require.True(w.t, exists)
			assert.Equal(w.t, nilValue, obj.(*corev1.ConfigMap).BinaryData)
			assert.Len(w.t, w.ours().GetIndexer().List(), 9)
		})
	}
}
