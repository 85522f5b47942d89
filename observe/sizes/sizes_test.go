// SPDX-License-Identifier: Apache-2.0

package sizes

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/store"
)

func storeOf(t testing.TB, objects ...any) store.Store {
	address := func(obj any) (string, error) { return fmt.Sprintf("%p", obj), nil }
	s := store.New(address, store.Options{})
	for _, obj := range objects {
		require.NoError(t, s.Add(obj))
	}
	return s
}

// The estimate is near the memory that the objects take, for all ways to decode them.
func TestSizes_AreTheMemoryOfObjects(t *testing.T) {
	const n = 1000
	for name, decode := range map[string]func(t *testing.T, pod *corev1.Pod) any{
		"protobuf": func(t *testing.T, pod *corev1.Pod) any {
			encoded, err := pod.Marshal()
			require.NoError(t, err)
			decoded := &corev1.Pod{}
			require.NoError(t, decoded.Unmarshal(encoded))
			return decoded
		},
		"JSON": func(t *testing.T, pod *corev1.Pod) any {
			encoded, err := json.Marshal(pod)
			require.NoError(t, err)
			decoded := &corev1.Pod{}
			require.NoError(t, json.Unmarshal(encoded, decoded))
			return decoded
		},
		"unstructured": func(t *testing.T, pod *corev1.Pod) any {
			encoded, err := json.Marshal(pod)
			require.NoError(t, err)
			decoded := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(encoded, &decoded.Object))
			return decoded
		},
		"large maps": func(*testing.T, *corev1.Pod) any {
			data := map[string]string{}
			for i := range 100 {
				data[fmt.Sprintf("a-name-of-its-own-%d", i)] = strings.Repeat("x", 100)
			}
			return &corev1.ConfigMap{Data: data}
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := make([]any, n)
			before := measure.Live()
			for i := range objects {
				objects[i] = decode(t, measure.Pod(i))
			}
			live := measure.Live() - before
			sizes := Measure(storeOf(t, objects...))
			assert.Equal(t, n, sizes.Objects)
			assert.Equal(t, maxSampled, sizes.Sampled)
			t.Logf("%d bytes, and %d estimated", live, sizes.Bytes)
			t.Log(sizes)
			assert.InEpsilon(t, live, sizes.Bytes, 0.15)
			runtime.KeepAlive(objects)
		})
	}
}

func TestSizes_NameFields(t *testing.T) {
	text := strings.Repeat("x", 4096)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: text[:2048]},
		ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{"example.com/a": text, "b": text[:1024]},
			Labels:      map[string]string{"label": text[:1024]},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: text}}},
	}
	for name, test := range map[string]struct {
		obj  any
		want map[string]int // at least, and at most 1.5 kB more
	}{
		"a Go type": {pod, map[string]int{
			".kind": 2048, ".metadata.annotations.example.com/a": 4096, ".metadata.labels": 1024,
			".metadata.annotations.b": 1024, ".spec.containers": 4096, ".spec.volumes": 24,
			".spec": 0, ".metadata": 0,
		}},
		"no Go type": {&unstructured.Unstructured{Object: map[string]any{
			"kind": text[:2048],
			"metadata": map[string]any{
				"annotations": map[string]any{"example.com/a": text},
				"labels":      map[string]any{"label": text[:1024]},
			},
			"spec": map[string]any{"containers": []any{map[string]any{"name": text}}},
		}}, map[string]int{
			".kind": 2048, ".metadata.annotations.example.com/a": 4096, ".metadata.labels": 1024,
			".spec.containers": 4096,
		}},
		"a ConfigMap": {&corev1.ConfigMap{
			Data:       map[string]string{"content": text},
			BinaryData: map[string][]byte{"b": []byte(text)},
		}, map[string]int{".data": 4096, ".binaryData": 4096}},
		"a Secret without a Go type": {&unstructured.Unstructured{Object: map[string]any{
			"data": map[string]any{"password": text}, "stringData": map[string]any{"token": text},
		}}, map[string]int{".data": 4096, ".stringData": 4096}},
		"a text": {text, map[string]int{".": 4096}},
		"a struct": {struct{ A, B any }{A: text, B: time.Now()},
			map[string]int{".A": 4096, ".B": 24}},
		"nil": {(*corev1.Pod)(nil), map[string]int{".": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			sizes := Measure(storeOf(t, test.obj))
			assert.Equal(t, 1, sizes.Sampled)
			sum := int64(0)
			for _, f := range sizes.Fields {
				sum += f.Bytes
				for _, content := range []string{"label", "content", "password", "token"} {
					assert.NotEqual(t, content, f.Path[strings.LastIndex(f.Path, ".")+1:])
				}
			}
			assert.Equal(t, sizes.Bytes, sum)
			for path, want := range test.want {
				assert.InDelta(t, want+750, sizes.Field(path).Bytes, 750, path)
			}
		})
	}
}

// The sample is spread over the store, and stands for the rest of it.
func TestSizes_OfASample(t *testing.T) {
	const n = 10 * maxSampled
	objects := make([]any, n)
	for i := range objects {
		objects[i] = &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", 2048)}}
		if i%2 == 0 {
			objects[i].(*corev1.ConfigMap).BinaryData = map[string][]byte{"b": make([]byte, 2048)}
		}
	}
	sizes := Measure(storeOf(t, objects...))
	assert.Equal(t, n, sizes.Objects)
	assert.Equal(t, maxSampled, sizes.Sampled)
	assert.InEpsilon(t, 2400*n, sizes.Field(".data").Bytes, 0.1)
	assert.InEpsilon(t, 2500*n/2, sizes.Field(".binaryData").Bytes, 0.5)
	assert.Regexp(t, `^1000 objects, about \d+ kB: .data \d+ %, .binaryData \d+ %, `,
		sizes.String())
	assert.Equal(t, "0 objects, about 0 kB", Measure(storeOf(t)).String())
}

type ring struct{ Next any }

// No object costs more than a bound, or makes the report large.
func TestSizes_OfHostileObjects(t *testing.T) {
	itself := &ring{}
	itself.Next = itself
	below := &struct{ A struct{ B struct{ C *ring } } }{}
	below.A.B.C = itself
	list := []any{nil}
	list[0] = list
	keys := map[string]string{}
	for i := range 5 * maxPaths {
		keys[fmt.Sprint(i)] = "x"
	}
	wide := make([]any, 20*maxObjectValues)
	for i := range wide {
		wide[i] = "x"
	}
	deep := any("x")
	for range 100_000 {
		deep = map[string]any{"d": deep}
	}
	for name, obj := range map[string]any{
		"itself": itself, "below": below, "list": &list, "wide": &wide, "deep": deep,
		"annotations": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: keys}},
		"a long key": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			strings.Repeat("x", 1<<20): "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := measuring{fields: map[string]int64{}}
			m.object(obj)
			assert.LessOrEqual(t, m.visited, maxObjectValues+2*maxNested)
			assert.LessOrEqual(t, len(m.fields), maxPaths+1)
			for path := range m.fields {
				assert.LessOrEqual(t, len(path), maxPathBytes)
			}
		})
	}
	objects := make([]any, maxSampled)
	for i := range objects {
		objects[i] = &struct{ Wide []any }{wide}
	}
	assert.Less(t, Measure(storeOf(t, objects...)).Sampled, 20)
}

// Beyond the bounds of one object or of the paths, fewer names are known, and fewer values are
// visited. Each value that is visited is counted once, in a path of its own while there is room.
func TestSizes_CountBeyondBounds(t *testing.T) {
	const each = 1024
	text := strings.Repeat("x", each)
	for _, n := range []int{maxPaths / 2, maxPaths - 1, maxPaths, maxPaths + 1, 3 * maxPaths} {
		annotated := map[string]string{}
		for i := range n {
			annotated[fmt.Sprint("a-", i)] = text
		}
		sizes := Measure(storeOf(t, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Annotations: annotated}}))
		own, sum := 0, int64(0)
		for _, f := range sizes.Fields {
			sum += f.Bytes
			if _, exists := annotated[strings.TrimPrefix(f.Path, annotations+".")]; exists {
				own++
				assert.InDelta(t, each, f.Bytes, 32, f.Path)
			}
		}
		require.Equal(t, sizes.Bytes, sum)
		require.InEpsilon(t, each*n, sizes.Bytes, 0.2, "%d annotations", n)
		rest := sizes.Field(".").Bytes
		require.InDelta(t, each*(n-own), rest, float64(64*n), "%d annotations", n)
		if n < maxPaths/2+1 {
			require.Equal(t, n, own)
			require.Zero(t, rest)
		} else {
			require.InDelta(t, min(n, maxPaths), own, 50) // the other fields have paths, too
		}
	}
	for _, n := range []int{maxObjectValues / 2, 2 * maxObjectValues} {
		list := make([]any, n)
		for i := range list {
			list[i] = &text
		}
		counted := min(n, maxObjectValues/2) // a pointer and its target are two values
		sizes := Measure(storeOf(t, &struct{ A []any }{list}))
		require.InEpsilon(t, 16*n+counted*(16+each), sizes.Field(".A").Bytes, 0.4, "%d values", n)
	}
}

func TestGrowth_Sizes(t *testing.T) {
	measure.Growth(t, 500, func(n int) {
		pod := &corev1.Pod{}
		for range n {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: "x", Env: []corev1.EnvVar{{Name: "a"}}})
		}
		Measure(storeOf(t, pod))
	})
}

func BenchmarkSizes(b *testing.B) {
	for _, n := range []int{300, 100_000} {
		objects := make([]any, n)
		for i := range objects {
			objects[i] = measure.Pod(i)
		}
		stored := storeOf(b, objects...)
		b.Run(fmt.Sprintf("pods=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Measure(stored)
			}
		})
	}
}
