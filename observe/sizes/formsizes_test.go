// SPDX-License-Identifier: Apache-2.0

package sizes

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

type podNode struct {
	compact.Meta
	Node string
}

// A Summary may be of a Secret, so the names of annotations are not shown.
func TestSizes_SummaryOfASecret(t *testing.T) {
	type withMetadata struct {
		compact.Meta
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	s := compact.New(compact.Summary(func(secret *corev1.Secret) *withMetadata {
		return &withMetadata{Metadata: secret.ObjectMeta}
	}), store.Options{})
	require.NoError(t, s.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "s", Annotations: map[string]string{"private": "x"}}}))
	sizes := Measure(s)
	assert.Positive(t, sizes.Field(annotations).Bytes)
	assert.Zero(t, sizes.Field(annotations+".private").Bytes)
}

// A typed indexer of a store has the sizes of the packed objects, too. Those that Compressed cannot
// decode are measured as they are, by field.
func TestSizes_OfTypedAndUncompressed(t *testing.T) {
	s := compact.New(compact.Compressed(), store.Options{})
	for i := range 20 {
		require.NoError(t, s.Add(measure.ClusterPod(i)))
	}
	sizes := Measure(s)
	assert.Equal(t, sizes, Measure(store.NewTypedIndexer[*corev1.Pod](s)))
	assert.Zero(t, sizes.Field(".spec.containers").Bytes)
	odd := measure.ClusterPod(20)
	odd.Kind = "two\nlines"
	require.NoError(t, s.Add(odd))
	assert.Positive(t, Measure(s).Field(".spec.containers").Bytes)
}

// The sizes of a store with a form are those of the packed objects: the memory that they take, less
// that of the store itself.
func TestSizes_OfForms(t *testing.T) {
	const n, before = 2000, 500 // objects that are measured, and before them
	for name, test := range map[string]struct {
		form  compact.Form
		paths []string
	}{
		"compressed": {compact.Compressed(), []string{"."}},
		"fields": {compact.FieldsOf[*corev1.Pod]("spec.nodeName", "metadata.labels"),
			[]string{".spec.nodeName", ".metadata.labels"}},
		"summary": {compact.Summary(func(pod *corev1.Pod) *podNode {
			return &podNode{Node: pod.Spec.NodeName}
		}), []string{".Node", ".Name"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := compact.New(test.form, store.Options{})
			add := func(i int) {
				encoded, err := measure.ClusterPod(i).Marshal()
				require.NoError(t, err)
				pod := &corev1.Pod{}
				require.NoError(t, pod.Unmarshal(encoded))
				require.NoError(t, s.Add(pod))
			}
			// The encoder would hold a large buffer of another test for a while.
			measure.Live()
			for i := range before { // those that stay decoded, and the encoder
				add(i)
			}
			live := measure.Live()
			for i := range n {
				add(before + i)
			}
			live = measure.Live() - live
			sizes := Measure(s)
			t.Logf("%d bytes each, %v", live/n, sizes)
			own := live/n - sizes.Bytes/int64(sizes.Objects)
			assert.Greater(t, own, int64(100), "the store's map and keys are not in the estimate")
			assert.Less(t, own, int64(350))
			for _, path := range test.paths {
				assert.Positive(t, sizes.Field(path).Bytes, path)
			}
			runtime.KeepAlive(s)
		})
	}
}
