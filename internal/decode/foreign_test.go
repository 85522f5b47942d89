// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/internal/tools/answers"
)

type (
	keptBytes         = answers.KeptBytes
	keptText          = answers.KeptText
	added             = answers.Added
	whole             = answers.Whole
	keeping[Spec any] = answers.Keeping[Spec]
	deep[Spec any]    = answers.Deep[Spec]
)

// The types of Kubernetes copy, so that they need no copies. A foreign type is found at any depth.
func TestForeign_Types(t *testing.T) {
	for _, c := range answers.Collections() {
		require.False(t, mayKeepJSON(c.Of), c.Kind)
		require.False(t, mayKeepProtobuf(c.Of), c.Kind)
	}
	for _, copies := range []reflect.Type{
		reflect.TypeFor[unstructured.Unstructured](),
		reflect.TypeFor[metav1.PartialObjectMetadata](),
		reflect.TypeFor[keeping[json.RawMessage]](), reflect.TypeFor[keeping[deep[time.Time]]](),
	} {
		require.False(t, mayKeepJSON(copies), copies)
	}
	for _, keeps := range []reflect.Type{
		reflect.TypeFor[keeping[keptBytes]](), reflect.TypeFor[keeping[deep[*keptBytes]]](),
		reflect.TypeFor[keeping[map[keptText]int]](), reflect.TypeFor[keeping[[]any]](),
		reflect.TypeFor[keeping[struct{ metav1.Time }]](), reflect.TypeFor[whole](),
	} {
		require.True(t, mayKeepJSON(keeps), keeps)
	}
	require.True(t, mayKeepProtobuf(reflect.TypeFor[whole]()))
	require.True(t, mayKeepProtobuf(reflect.TypeFor[struct{ A []*answers.Holding }]()))
}

// oneMap gives all its objects one map.
type oneMap struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

var labelsOfAll = map[string]string{"a": "b"}

func (o *oneMap) DeepCopyObject() runtime.Object { return o }
func (o *oneMap) UnmarshalJSON([]byte) error {
	o.Labels, o.Namespace = labelsOfAll, strings.Clone("ns")
	return nil
}

// cloned is read from protobuf by code of its own.
type cloned struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (c *cloned) DeepCopyObject() runtime.Object { return c }
func (c *cloned) Reset()                         {}
func (c *cloned) Unmarshal([]byte) error {
	c.Namespace = strings.Clone("ns")
	return nil
}

// Nothing is written into what the code of a type has made: a reader of another object may see it.
// The race detector finds it.
func TestForeign_MapsAreNotWritten(t *testing.T) {
	d := New(func() runtime.Object { return &oneMap{} }, NewShared())
	obj, err := d.JSON([]byte("{}"))
	require.NoError(t, err)
	read := make(chan string)
	go func() { read <- obj.(*oneMap).Labels["a"] }()
	_, err = d.JSON([]byte("{}"))
	require.NoError(t, err)
	require.Equal(t, "b", <-read)
}

// The second decode of an object has nothing of the first one, which v2 has refused halfway, for
// any user of the decoder.
func TestForeign_NothingOfARefusedDecode(t *testing.T) {
	const item = `{"kind":"Custom","apiVersion":"example.com/v1","spec":1,` +
		`"metadata":{"name":"a","name":"b"}}`
	d := New(func() runtime.Object { return &keeping[added]{} }, NewShared())
	require.True(t, d.plain)
	sameAsKubernetes(t, d, []byte(item))
}
