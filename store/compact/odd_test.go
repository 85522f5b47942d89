// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/store"
)

// setLimits makes the limits of Compressed small, so that few small objects cross them.
func setLimits(t *testing.T, recent, recentBytes, dictionary int) {
	oldLen, oldBytes, oldDictionary := recentLen, maxRecentBytes, dictionaryBytes
	t.Cleanup(func() {
		recentLen, maxRecentBytes, dictionaryBytes = oldLen, oldBytes, oldDictionary
	})
	recentLen, maxRecentBytes, dictionaryBytes = recent, recentBytes, dictionary
}

// lossy does not decode what it encodes.
type lossy struct {
	widget
	broken bool
}

func (l *lossy) MarshalJSON() ([]byte, error) {
	if l.broken {
		return nil, fmt.Errorf("no JSON\ntoday")
	}
	return json.Marshal(&l.widget)
}

func (l *lossy) UnmarshalJSON(data []byte) error {
	if bytes.Contains(data, []byte("reject")) {
		return fmt.Errorf("rejected")
	}
	return nil
}

// Objects of types that cannot be decoded, or only in part, are kept as they are.
func TestCompressed_KeepsLossyTypesWhole(t *testing.T) {
	named := func(name string) widget { return widget{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	for name, obj := range map[string]any{
		"encoded to something else": &lossy{widget: named("a")},
		"refuses to decode":         &lossy{widget: named("reject")},
		"refuses to encode":         &lossy{widget: named("a"), broken: true},
		"panics":                    &alarming{widget: named("a")},
		"no pointer":                byValue{&metav1.ObjectMeta{Name: "a"}},
		"no struct":                 &table{"a": "b"},
		"embeds an object without a type": &pricedUnstructured{
			&unstructured.Unstructured{Object: map[string]any{}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Compressed(), store.Options{})
			require.NoError(t, s.Add(obj))
			assert.Equal(t, []any{obj}, s.List())
			require.NoError(t, s.Replace([]any{obj}, "1"))
			assert.Equal(t, []any{obj}, s.List())
			if reflect.TypeOf(obj).Kind() == reflect.Pointer {
				assert.Same(t, obj, s.List()[0])
			}
		})
	}
}

// Generated code for protobuf leaves out some fields of some types: their objects are in JSON, with
// all fields.
func TestCompressed_FieldsWithoutProtobuf(t *testing.T) {
	named := metav1.ObjectMeta{Name: "a"}
	set := decodedFrom[appsv1.StatefulSet](t, `{"metadata":{"name":"a"},"spec":{
		"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1"}]}}`)
	for _, obj := range []any{
		set,
		&appsv1.ControllerRevision{ObjectMeta: named, Data: runtime.RawExtension{Raw: []byte("1")}},
		&appsv1.ControllerRevision{ObjectMeta: named,
			Data: runtime.RawExtension{Object: labeledPod()}},
	} {
		k := Compressed().newKeeper().(*compressedKeeper)
		kept, err := k.keep(obj, Meta{})
		require.NoError(t, err)
		k.recent.Purge()
		assert.Equal(t, obj, k.restore(kept))
		if obj == any(set) {
			assert.IsType(t, &compressedObject{}, kept)
		}
	}
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[*corev1.Pod]():                   true,
		reflect.TypeFor[*corev1.PersistentVolumeClaim](): true,
		reflect.TypeFor[*metav1.PartialObjectMetadata](): true,
		reflect.TypeFor[*appsv1.StatefulSet]():           false,
		reflect.TypeFor[*unstructured.Unstructured]():    false,
	} {
		assert.Equal(t, want, newCodec(typ).protobuf, typ)
	}
}

// The methods of an embedded object would encode that alone: the other fields are kept too.
func TestCompressed_EmbeddedObject(t *testing.T) {
	for _, obj := range []any{&pricedPod{*labeledPod(), 3}, &pricedPointer{labeledPod(), 3}} {
		k := Compressed().newKeeper().(*compressedKeeper)
		kept, err := k.keep(obj, Meta{})
		require.NoError(t, err)
		assert.IsType(t, &compressedObject{}, kept)
		k.recent.Purge()
		assert.Equal(t, obj, k.restore(kept))
	}
}

type leaf struct{}

type tree struct {
	Left, Right *tree
	Leaves      map[string][]leaf
	Text        string
}

// The structs of a type are found in pointers, slices and maps, each once.
func TestAddStructs(t *testing.T) {
	structs := map[reflect.Type]bool{}
	addStructs(reflect.TypeFor[*tree](), structs)
	assert.Equal(t, map[reflect.Type]bool{
		reflect.TypeFor[tree](): true, reflect.TypeFor[leaf](): true}, structs)
}

// alarming does not expect its own value.
type alarming struct{ widget }

func (a *alarming) MarshalJSON() ([]byte, error) { panic("unknown kind of union") }

type byValue struct{ metav1.Object }

// table is a map with metadata.
type table map[string]string

func (table) GetObjectMeta() metav1.Object { return &metav1.ObjectMeta{Name: "a"} }

// Types that have the methods of an embedded object for their encoding.
type (
	pricedPod struct {
		corev1.Pod
		Cost float64
	}
	pricedPointer struct {
		*corev1.Pod
		Cost float64
	}
	pricedUnstructured struct {
		*unstructured.Unstructured
		Cost float64
	}
)

// schedule is a custom resource with a time, and with a union in a map, as generators make them.
type schedule struct {
	metav1.ObjectMeta `json:"metadata"`
	At                metav1.Time      `json:"at"`
	Probes            map[string]probe `json:"probes,omitempty"`
}

// probe has its encoding from a method of the pointer, which encoding/json does not call for the
// values of a map.
type probe struct {
	HTTP int `json:"-"`
}

func (p *probe) MarshalJSON() ([]byte, error) {
	if p.HTTP == 0 {
		return []byte("{}"), nil
	}
	return fmt.Appendf(nil, `{"http":%d}`, p.HTTP), nil
}

func (p *probe) UnmarshalJSON(data []byte) error {
	fields := map[string]int{}
	err := json.Unmarshal(data, &fields)
	p.HTTP = fields["http"]
	return err
}

func decodedFrom[T any](t *testing.T, text string) *T {
	t.Helper()
	obj := new(T)
	require.NoError(t, json.Unmarshal([]byte(text), obj))
	return obj
}

// One object that cannot be encoded and decoded is kept as it is. It does not matter when it is
// received, and its neighbours are compressed as without it.
func TestCompressed_OneOddObject(t *testing.T) {
	usual := func(i int) any {
		return decodedFrom[schedule](t, fmt.Sprintf(
			`{"metadata":{"name":"n%d"},"at":"2026-01-01T00:00:00Z","probes":{"a":{}}}`, i))
	}
	secret := func(i int) any {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
			Data: map[string][]byte{"key": []byte("value")}}
	}
	for name, test := range map[string]struct {
		odd   any
		usual func(i int) any
	}{
		"a year of five digits in UTC": {decodedFrom[schedule](t,
			`{"metadata":{"name":"odd"},"at":"9999-12-31T23:59:59-08:00"}`), usual},
		"a value of a map that is a union": {decodedFrom[schedule](t,
			`{"metadata":{"name":"odd"},"at":null,"probes":{"a":{"http":80}}}`), usual},
		"a nil value": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "odd"},
			Data: map[string][]byte{"key": nil}}, secret},
		"a kind of two lines": {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "odd"},
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "a\nb"}}, secret},
	} {
		for _, before := range []int{0, 1, 50} {
			t.Run(fmt.Sprintf("%s after %d", name, before), func(t *testing.T) {
				setLimits(t, 3, 64<<10, 1<<10)
				s := New(Compressed(), store.Options{})
				for i := range before {
					require.NoError(t, s.Add(test.usual(i)))
				}
				require.NoError(t, s.Add(test.odd))
				for i := range 60 {
					require.NoError(t, s.Update(test.usual(i)))
				}
				got, _, err := s.GetByKey("odd")
				require.NoError(t, err)
				assert.Same(t, test.odd, got)
				for _, obj := range s.Packed().List() {
					_, compressed := obj.(*packed).kept.(*compressedObject)
					assert.Equal(t, obj.(*packed).meta().Name != "odd", compressed)
				}
				for i := range 60 {
					got, _, err := s.GetByKey(fmt.Sprint("n", i))
					require.NoError(t, err)
					assert.Equal(t, test.usual(i), got)
				}
				assert.Len(t, s.List(), 61)
			})
		}
	}
}

// raw keeps the bytes that it is decoded from, as some types do to decode them later.
type raw []byte

func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

func (r *raw) UnmarshalJSON(data []byte) error {
	*r = data
	return nil
}

type rawHolder struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              raw `json:"spec"`
}

// A type may keep what its UnmarshalJSON gets: it is never overwritten with another object.
func TestCompressed_TypesKeepTheirBytes(t *testing.T) {
	setLimits(t, 100, 64<<10, 1<<10)
	s := New(Compressed(), store.Options{})
	spec := func(i int) string { return fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", i%17)) }
	for i := range 300 {
		require.NoError(t, s.Add(&rawHolder{metav1.ObjectMeta{Name: fmt.Sprint(i)}, raw(spec(i))}))
	}
	held := s.List()
	for _, obj := range append(held, s.List()...) {
		var i int
		_, err := fmt.Sscan(obj.(*rawHolder).Name, &i)
		require.NoError(t, err)
		assert.Equal(t, spec(i), string(obj.(*rawHolder).Spec))
	}
}

type opaque struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              json.RawMessage  `json:"spec"`
	At                metav1.MicroTime `json:"at"`
	Args              []string         `json:"args,omitempty"`
}

// F2: two reads of a version are deeply equal, whether the object was just received, is among the
// recent ones, or is decoded again, and whether it is read for the first time.
func TestCompressed_AllReadsAreEqual(t *testing.T) {
	now := metav1.NewTime(time.Now())
	pod := decodedFrom[corev1.Pod](t, `{"metadata":{"name":"a","finalizers":[]},"spec":{
		"volumes":[{"name":"v","emptyDir":{"sizeLimit":"8Gi"}}],"containers":[{"name":"a","command":[],"resources":{"limits":{
		"memory":"8Gi","cpu":"1000m","x":"0.5","y":"1e3","z":"12345678901234567890123"}}}]}}`)
	pod.CreationTimestamp = now
	for name, obj := range map[string]any{
		"pod":  pod,
		"JSON": &opaque{Spec: []byte(`{ "a":  "<b>" }`), Args: []string{}},
		"times in JSON": &opaque{Spec: []byte(`1`), At: metav1.NewMicroTime(now.Time),
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: now}},
		"empty list in JSON": &opaque{Spec: []byte(`1`), Args: []string{}},
		"unstructured": &unstructured.Unstructured{Object: map[string]any{
			"a": float64(1), "b": "<b>", "c": []any{}, "d": []any(nil), "e": map[string]any{}}},
		"metadata": &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: now, Finalizers: []string{}, Labels: map[string]string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			k := Compressed().newKeeper().(*compressedKeeper)
			kept, err := k.keep(obj, Meta{})
			require.NoError(t, err)
			if strings.HasPrefix(name, "empty list") { // it equals nil: the object is compressed
				require.IsType(t, &compressedObject{}, kept)
			}
			received := k.restore(kept)
			for range 3 {
				k.recent.Purge()
				assert.Equal(t, received, k.restore(kept))
				assert.True(t, reflect.DeepEqual(received, k.restore(kept)))
			}
		})
	}
}

// Kinds share the codec of their type: a server that sends other kinds cannot make a store hold an
// encoder for each.
func TestCompressed_KindsShareACodec(t *testing.T) {
	k := Compressed().newKeeper().(*compressedKeeper)
	for i := range 100 {
		kind := metav1.TypeMeta{APIVersion: fmt.Sprint("example.com/v", i%7), Kind: fmt.Sprint(i)}
		obj := runtime.Object(&metav1.PartialObjectMetadata{TypeMeta: kind})
		kept, err := k.keep(obj, Meta{})
		require.NoError(t, err)
		k.recent.Purge()
		assert.Equal(t, obj, k.restore(kept))
	}
	assert.Len(t, k.codecs, 1)
}

// Z3: a text that was compressed with another dictionary is an error, not another text.
func TestCompressor_OtherDictionary(t *testing.T) {
	setLimits(t, 1, 1, 4<<10)
	text := func(word string, i int) []byte {
		return bytes.Repeat(fmt.Appendf(nil, "%s %d ", word, i), 40)
	}
	a, b := &compressor{}, &compressor{}
	for i := range 100 {
		a.compress(text("node", i))
		b.compress(text("disk", i))
	}
	require.True(t, a.coder.Load().dictionary)
	got, err := a.decompress(a.compress(text("node", 7)))
	require.NoError(t, err)
	assert.Equal(t, text("node", 7), got)
	_, err = b.decompress(a.compress(text("node", 7)))
	require.ErrorContains(t, err, "CRC check failed")
}

// Z1: once the dictionary is full, the next text is compressed with it.
func TestCompressor_FullDictionary(t *testing.T) {
	setLimits(t, 1, 1, 400)
	c := &compressor{}
	for i := range 8 {
		c.compress(bytes.Repeat([]byte{byte(i)}, 400/dictionaryTexts))
		require.Equal(t, i >= dictionaryTexts, c.coder.Load().dictionary, i)
	}
}

// One text that is like no other does not become the whole dictionary.
func TestCompressor_OddFirstText(t *testing.T) {
	size := func(first ...[]byte) (n int) {
		c := &compressor{}
		for _, text := range first {
			c.compress(text)
		}
		for i := range 300 {
			n = len(c.compress(fmt.Appendf(nil, "spec.nodeName=%d %s", i, strings.Repeat(
				"metadata.labels spec.containers status.conditions status.podIP ", 12)[i:])))
		}
		require.True(t, c.coder.Load().dictionary)
		return n
	}
	assert.LessOrEqual(t, size(bytes.Repeat([]byte{0, 1, 2, 3, 5, 8}, 10<<10)), 2*size())
}

// Random texts, around every limit, are what they were: without and with a dictionary, shorter than
// it, longer than the window, with and without repetitions.
func TestCompressor_Model(t *testing.T) {
	setLimits(t, 1, 1, 600)
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 35))
		c := &compressor{}
		var texts, compressed [][]byte
		for i := range 40 {
			limit := []int{1, 10, 150, 600, 2000, 3 * windowBytes}[random.IntN(6)]
			text := make([]byte, random.IntN(limit))
			for j := range text {
				if j >= 20 && random.IntN(8) > 0 {
					text[j] = text[j-1-random.IntN(20)]
					continue
				}
				text[j] = byte(random.IntN(64))
			}
			if i > 0 && random.IntN(3) == 0 { // like another, at any distance
				other := texts[random.IntN(i)]
				text = append(text, other[len(other)/2:]...)
			}
			texts, compressed = append(texts, text), append(compressed, c.compress(text))
			for j := range texts {
				if j%7 != i%7 {
					continue
				}
				got, err := c.decompress(compressed[j])
				require.NoError(t, err)
				require.True(t, bytes.Equal(texts[j], got), "seed %d, text %d of %d", seed, j, i)
			}
		}
		require.True(t, c.coder.Load().dictionary)
	}
}
