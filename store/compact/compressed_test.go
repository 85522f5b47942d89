// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/store"
)

// widget is a custom resource without protobuf.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              map[string]any `json:"spec"`
}

// Objects of every kind of encoding are equal after they were decoded, with their kind, if they had
// one.
func TestCompressed_Encodings(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "7"}
	kind := metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}
	for name, obj := range map[string]any{
		"protobuf":           &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n"}},
		"protobuf with kind": &corev1.Pod{TypeMeta: kind, ObjectMeta: meta},
		"metadata":           &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: meta},
		"JSON":               &widget{kind, meta, map[string]any{"n": int64(1<<60 + 1), "f": 1.5}},
		"unstructured": &unstructured.Unstructured{Object: map[string]any{
			"kind": "Widget", "apiVersion": "example.com/v1",
			"metadata": map[string]any{"namespace": "ns", "name": "a", "resourceVersion": "7"},
			"spec":     map[string]any{"n": int64(1 << 60), "list": []any{1.5, nil, true}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := Compressed().newKeeper().(*compressedKeeper)
			kept, err := k.keep(obj, Meta{"ns", "a", "", "7"})
			require.NoError(t, err)
			first := k.restore(kept)
			assert.NotSame(t, obj, first)
			assert.Equal(t, obj, first)
			assert.Same(t, first, k.restore(kept), "C1: it was just received")
			k.recent.Purge()
			decoded := k.restore(kept)
			assert.NotSame(t, first, decoded)
			assert.Equal(t, first, decoded)
			assert.Same(t, decoded, k.restore(kept), "C1: it was just read")
		})
	}
}

// A type with one kind and without it, in turn, as from lists and watches of other clients.
func TestCompressed_KindsOfOneType(t *testing.T) {
	s := New(Compressed(), store.Options{})
	with := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	with.Name = "with"
	without := &corev1.Pod{}
	without.Name = "without"
	require.NoError(t, s.Replace([]any{with, without}, "1"))
	s.packer.keeper.(*compressedKeeper).recent.Purge()
	for _, want := range []*corev1.Pod{with, without} {
		got, _, err := s.GetByKey(want.Name)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}

// slow calls a function once, while it is decoded.
type slow struct{ widget }

var whileDecoded func()

func (s *slow) MarshalJSON() ([]byte, error) { return json.Marshal(&s.widget) }

func (s *slow) UnmarshalJSON(data []byte) error {
	if during := whileDecoded; during != nil {
		whileDecoded = nil
		during()
	}
	return json.Unmarshal(data, &s.widget)
}

// F2: readers that decode a version at the same time get the same object.
func TestCompressed_ReadersAtTheSameTime(t *testing.T) {
	k := Compressed().newKeeper().(*compressedKeeper)
	kept, err := k.keep(&slow{}, Meta{})
	require.NoError(t, err)
	k.recent.Purge()
	var first any
	whileDecoded = func() { first = k.restore(kept) }
	second := k.restore(kept)
	assert.NotNil(t, first)
	assert.Same(t, first, second)
}

// The number of decoded objects, and the size of each, are bounded.
func TestCompressed_RecentIsBounded(t *testing.T) {
	k := Compressed().newKeeper().(*compressedKeeper)
	for i := range 3 * recentLen {
		_, err := k.keep(measure.Pod(i), Meta{})
		require.NoError(t, err)
	}
	assert.Equal(t, 128, k.recent.Len())
	assert.Equal(t, 64<<10, maxRecentBytes)
	k.recent.Purge()
	large := &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", maxRecentBytes)}}
	_, _, encodedLen, ok := k.codecOf(reflect.TypeOf(large)).pack(large)
	require.True(t, ok)
	require.InDelta(t, maxRecentBytes, encodedLen, 100)
	for recentBytes, want := range map[int]int{encodedLen - 1: 0, encodedLen: 1} {
		setLimits(t, recentLen, recentBytes, dictionaryBytes)
		kept, err := k.keep(large, Meta{})
		require.NoError(t, err)
		assert.Equal(t, want, k.recent.Len(), "received")
		k.recent.Purge()
		assert.Equal(t, large, k.restore(kept))
		assert.Equal(t, want, k.recent.Len(), "read")
		k.recent.Purge()
	}
}

// An object that is read again and again stays decoded, whatever else is received.
func TestCompressed_RecentWasRead(t *testing.T) {
	setLimits(t, 3, 64<<10, 32<<10)
	k := Compressed().newKeeper().(*compressedKeeper)
	kept, err := k.keep(labeledPod(), Meta{})
	require.NoError(t, err)
	want := k.restore(kept)
	for i := range 10 {
		_, err := k.keep(measure.Pod(i), Meta{})
		require.NoError(t, err)
		require.Same(t, want, k.restore(kept))
	}
}

// Z1, Z2: the dictionary is the first texts, up to its size, and does not change. Every text can be
// decompressed, those before the dictionary too.
func TestCompressor_Dictionary(t *testing.T) {
	c := &compressor{}
	var texts, compressed [][]byte
	before := -1 // number of texts without a dictionary
	for i := range 200 {
		text, err := measure.ClusterPod(i).Marshal()
		require.NoError(t, err)
		texts, compressed = append(texts, text), append(compressed, c.compress(text))
		if c.coder.Load().dictionary && before < 0 {
			before = i
			assert.Nil(t, c.first)
		}
	}
	require.Positive(t, before)
	assert.GreaterOrEqual(t, len(bytes.Join(texts[:before], nil)), dictionaryBytes)
	assert.Less(t, len(bytes.Join(texts[:before-1], nil)), dictionaryBytes)
	coder := c.coder.Load()
	without, with := 0, 0
	for i, text := range texts {
		got, err := c.decompress(compressed[i])
		require.NoError(t, err)
		require.Equal(t, text, got, i)
		with += len(coder.encoder.EncodeAll(text, nil))
		without += len(newCoder(nil).encoder.EncodeAll(text, nil))
	}
	assert.Less(t, with, without/2, "the dictionary halves the bytes, or more")
	assert.Same(t, coder, c.coder.Load())
}

func TestCompressor_OtherTexts(t *testing.T) {
	c := &compressor{}
	for _, text := range []string{
		"", "a", strings.Repeat("long ", dictionaryBytes), "", "b", strings.Repeat("x", 3<<20),
	} {
		got, err := c.decompress(c.compress([]byte(text)))
		require.NoError(t, err)
		require.True(t, text == string(got), "%d bytes", len(text))
	}
	_, err := c.decompress([]byte("no frame"))
	require.Error(t, err)
}

// Writers and readers of any number, while the dictionary is made; run it with -race.
func TestIndexer_Concurrent(t *testing.T) {
	for _, f := range forms {
		t.Run("form="+f.name, func(t *testing.T) {
			s := New(f.form, store.Options{Indexers: store.Indexers{"phase": byPhase}})
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					for i := range 100 {
						pod := measure.ClusterPod(w*100 + i)
						assert.NoError(t, s.Add(pod))
						got, _, err := s.Get(pod)
						assert.NoError(t, err)
						f.same(t, pod, got)
					}
				})
				wg.Go(func() {
					for range 20 {
						for _, obj := range s.List() {
							_, err := store.MetaNamespaceKeyFunc(obj)
							assert.NoError(t, err)
						}
						_, err := s.ByIndex("phase", "Running")
						assert.NoError(t, err)
					}
				})
			}
			wg.Go(func() {
				err := s.AddIndexers(store.Indexers{"image": byImage})
				assert.True(t, err == nil || !f.form.Whole())
			})
			wg.Wait()
			assert.Equal(t, 400, s.Len())
		})
	}
}

// K2, K3.
func TestPacker(t *testing.T) {
	p := NewPacker(Summary(summarize), store.Indexers{"phase": byPhase})
	pod := measure.Pod(1)
	once, err := p.Pack(pod)
	require.NoError(t, err)
	twice, err := p.Pack(once)
	require.NoError(t, err)
	assert.Same(t, once, twice)
	summary := p.Unpack(once)
	assert.Same(t, summary, p.Unpack(summary))
	key, err := p.Pack(store.ExplicitKey("k"))
	require.NoError(t, err)
	assert.Equal(t, store.ExplicitKey("k"), key)
	tombstone := store.DeletedFinalStateUnknown{Key: "k", Obj: once}
	packed, err := p.Pack(tombstone)
	require.NoError(t, err)
	assert.Equal(t, tombstone, packed)
	assert.Equal(t, store.DeletedFinalStateUnknown{Key: "k", Obj: summary}, p.Unpack(tombstone))
	assert.Equal(t, store.DeletedFinalStateUnknown{Key: "k"},
		p.Unpack(store.DeletedFinalStateUnknown{Key: "k"}))
	assert.Nil(t, p.Unpack(nil))
	_, err = p.Pack("text")
	require.ErrorContains(t, err, "object has no meta")
}

// An index function that fails is a programming error, as in a store.
func TestPacker_IndexFuncFails(t *testing.T) {
	p := NewPacker(Compressed(), store.Indexers{"broken": func(any) ([]string, error) {
		return nil, fmt.Errorf("broken")
	}})
	assert.PanicsWithError(t,
		`unable to calculate an index entry for key "ns/a" on index "broken": broken`,
		func() { _, _ = p.Pack(labeledPod()) })
}
