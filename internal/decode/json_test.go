// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"example.com/informerstack/internal/tools/answers"
)

func newPod() runtime.Object { return &v1.Pod{} }

// sameAsKubernetes requires J1 and J2: raw has the same object, or the same error.
func sameAsKubernetes(t require.TestingT, d *Decoder, raw []byte) {
	got, gotErr := d.JSON(raw)
	want := d.newObject()
	wantErr := Unmarshal(raw, want)
	require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(errors.Unwrap(gotErr)), "%T: %s", want, raw)
	if wantErr == nil && !reflect.DeepEqual(want, got) {
		require.Equal(t, want, got, "%s", raw)
		require.Fail(t, "the objects differ", "%T: %s", want, raw)
	}
}

// Random objects of every kind, also with mutations, are decoded as by the decoder of Kubernetes,
// and v2 decodes all objects without mutations, and many with them.
func TestJSON_EveryKind(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	mutations, byV2 := 0, 0
	for i, c := range answers.Collections() {
		newObject := func() runtime.Object { return answers.New(c.Of) }
		_, items := c.Fuzzed(t, int64(i))
		for _, item := range items {
			d := New(newObject, NewShared())
			require.True(t, d.plain, c.Kind)
			raw, err := utiljson.Marshal(item)
			require.NoError(t, err)
			sameAsKubernetes(t, d, raw)
			require.Zero(t, d.v2.next.Load(), "%v: v2 refuses %s", c.Kind, raw)
			for range 16 {
				mutated := raw
				for range 1 + random.Intn(3) {
					if mutated = answers.Mutate(random, mutated); !json.Valid(mutated) {
						break
					}
				}
				d.v2 = trust{}
				sameAsKubernetes(t, d, mutated)
				mutations++
				if jsonv2.Unmarshal(mutated, newObject()) == nil {
					byV2++
				}
			}
		}
	}
	require.Greater(t, byV2, mutations/6, "of %d", mutations)
}

// An object that only the decoder of Kubernetes accepts makes v2 rest for one object; if all are
// such objects, v2 is asked once in a hundred.
func TestJSON_TypeThatV2Refuses(t *testing.T) {
	d := New(newPod, NewShared())
	sameAsKubernetes(t, d, []byte(`{"metadata":{"name":1}}`))
	require.Zero(t, d.v2.next.Load(), "neither accepts this object")
	odd := []byte(`{"metadata":{"name":"a","name":"b"}}`)
	usual := []byte(`{"metadata":{"name":"a"}}`)
	resting := func(raw []byte, count int) (rested int) {
		for range count {
			if d.v2.rest.Load() > 0 {
				rested++
			}
			sameAsKubernetes(t, d, raw)
		}
		return rested
	}
	for range 3 {
		require.Equal(t, 0, resting(odd, 1))
		require.EqualValues(t, 2, d.v2.next.Load())
		require.Equal(t, 1, resting(usual, 1000), "one odd object")
	}
	const count = 3_000
	require.InDelta(t, count-count/maxRest, resting(odd, count), 8)
	require.Less(t, resting(usual, 1000), maxRest+1)
	require.Equal(t, 0, resting(usual, 1000))
}

// A type for which the decoders have different rules is left to that of Kubernetes.
func TestJSON_IsPlain(t *testing.T) {
	type bytesOfMyOwn []json.Delim
	type myByte byte
	type embedded struct{ B int }
	type tree struct {
		Left  *tree
		Lower []tree
	}
	type embeddedTime struct {
		metav1.Time
		A int
	}
	hidden := reflect.StructField{Name: "a", PkgPath: "p", Type: reflect.TypeFor[int]()}
	tagged := hidden
	tagged.Tag = `json:"a"`
	for name, test := range map[string]struct {
		t     reflect.Type
		plain bool
	}{
		"pod":      {reflect.TypeFor[v1.Pod](), true},
		"metadata": {reflect.TypeFor[metav1.PartialObjectMetadata](), true},
		"unusual names": {reflect.TypeFor[struct {
			A int `json:"x-a_b.$c,omitempty"`
		}](), true},
		"recursive":          {reflect.TypeFor[tree](), true},
		"bytes":              {reflect.TypeFor[struct{ A []byte }](), true},
		"any":                {reflect.TypeFor[struct{ A any }](), false},
		"map of any":         {reflect.TypeFor[struct{ A map[string]any }](), false},
		"slice of runes":     {reflect.TypeFor[bytesOfMyOwn](), true},
		"slice of own bytes": {reflect.TypeFor[struct{ A []myByte }](), false},
		"array":              {reflect.TypeFor[struct{ A [2]int }](), false},
		"time":               {reflect.TypeFor[struct{ A time.Time }](), false},
		"duration":           {reflect.TypeFor[struct{ A []time.Duration }](), false},
		"number":             {reflect.TypeFor[struct{ A *json.Number }](), false},
		"keys of numbers":    {reflect.TypeFor[map[int]string](), false},
		"keys with rules":    {reflect.TypeFor[map[json.Number]string](), false},
		"keys that decode":   {reflect.TypeFor[map[answers.KeptText]string](), false},
		"string option": {reflect.TypeFor[struct {
			A int `json:"a,string"`
		}](), false},
		"inline": {reflect.TypeFor[struct {
			A embedded `json:",inline"`
		}](), false},
		"quoted name": {reflect.TypeFor[struct {
			A int `json:"'a'"`
		}](), false},
		"hidden field":        {reflect.StructOf([]reflect.StructField{hidden}), true},
		"hidden tagged field": {reflect.StructOf([]reflect.StructField{tagged}), false},
		"embedded option": {reflect.TypeFor[struct {
			metav1.ListMeta `json:",omitempty"`
		}](), false},
		"embedded number": {reflect.TypeFor[struct{ reflect.Kind }](), false},
		"embedded any":    {reflect.TypeFor[struct{ reflect.StructField }](), false},
		"hidden name": {reflect.TypeFor[struct {
			metav1.TypeMeta
			A string `json:"kind"`
		}](), false},
		"embedded pointer":     {reflect.TypeFor[struct{ *metav1.ObjectMeta }](), false},
		"hidden embedded":      {reflect.TypeFor[struct{ embedded }](), false},
		"embedded time":        {reflect.TypeFor[struct{ A embeddedTime }](), true},
		"time without a name":  {reflect.TypeFor[struct{ A struct{ metav1.Time } }](), false},
		"named pointer":        {reflect.TypeFor[struct{ A timeRef }](), false},
		"own decoder":          {reflect.TypeFor[struct{ A runtime.RawExtension }](), true},
		"own decoder of v2":    {reflect.TypeFor[struct{ A onlyV2 }](), false},
		"object's own decoder": {reflect.TypeFor[unstructured.Unstructured](), false},
	} {
		require.Equal(t, test.plain, readsPlainly(test.t), name)
	}
	usual := regexp.MustCompile(`^[a-zA-Z0-9_.$-]$`)
	for c := range rune(300) {
		require.Equal(t, !usual.MatchString(string(c)), isUnusualInNames(c), "%q", c)
	}
}

// An Unstructured of newObject loses its content, if it has any.
func TestJSON_UnstructuredIsReplaced(t *testing.T) {
	d := New(func() runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "a": "b"}}
	}, NewShared())
	obj, err := d.JSON([]byte(`{"metadata":{"name":"a"}}`))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"metadata": map[string]any{"name": "a"}},
		obj.(*unstructured.Unstructured).Object)
}

// FuzzJSON looks for a text that the two decoders read differently.
func FuzzJSON(f *testing.F) {
	for _, seed := range append(answers.Replacements, `{"metadata":{"name":"a"},"spec":{"x":1}}`) {
		f.Add([]byte(`{"metadata":{"labels":{"a":"b"},"creationTimestamp":` + seed + `}}`))
		f.Add([]byte(`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":` + seed +
			`}},"ports":[{"containerPort":` + seed + `}]}],"hostNetwork":true}}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		sameAsKubernetes(t, New(newPod, NewShared()), raw)
	})
}

// A large object goes to the decoder of Kubernetes, and has the same result. v2 refuses a name that
// occurs twice, and so reveals the objects that it was asked for.
func TestJSON_LargeObject(t *testing.T) {
	const before, after = `{"metadata":{"annotations":{"a":"`, `"},"name":"a","name":"b"}}`
	for n, asked := range map[int]bool{
		maxFastBytes - 1: true, maxFastBytes: true,
		maxFastBytes + 1: false, 2 * maxFastBytes: false,
	} {
		raw := []byte(before + strings.Repeat("x", n-len(before)-len(after)) + after)
		require.Len(t, raw, n)
		d := New(newPod, NewShared())
		sameAsKubernetes(t, d, raw)
		require.Equal(t, asked, d.v2.next.Load() > 0, "%d bytes", n)
	}
}
