// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/tools/answers"
)

// answers of a server that are no list of pods, and empty.
var wrongAnswers = map[string]string{
	"discovery of a group":     `{"kind":"APIResourceList","apiVersion":"v1","resources":[]}`,
	"discovery of groups":      `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
	"an empty list of secrets": `{"kind":"SecretList","apiVersion":"v1","items":[]}`,
	"null secrets":             `{"kind":"SecretList","apiVersion":"v1","items":null}`,
	"pods of another group":    `{"kind":"PodList","apiVersion":"metrics.k8s.io/v1","items":[]}`,
	"pods of another version":  `{"kind":"PodList","apiVersion":"v2","items":[]}`,
	"pods of no version":       `{"kind":"PodList","items":[]}`,
	"no kind":                  `{"items":[]}`,
	"no kind, null":            `{"items":null}`,
	"nothing":                  `{}`,
	"a list without items":     `{"kind":"PodList","apiVersion":"v1","metadata":{}}`,
	"items of other case":      `{"kind":"PodList","apiVersion":"v1","Items":[]}`,
	"a List of anything":       `{"kind":"List","apiVersion":"v1","items":[]}`,
	"a kind that changes":      `{"kind":"PodList","apiVersion":"v1","items":[],"kind":"NodeList"}`,
	"an empty Table":           `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`,
	"metadata of pods": `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` +
		`"items":[]}`,
	"one secret of no kind": `{"kind":"SecretList","apiVersion":"v1","items":[{}]}`,
	"a late kind":           `{"items":[{}],"kind":"SecretList","apiVersion":"v1"}`,
	"one item, no kind":     `{"items":[{}]}`,
	"one item of another group": `{"kind":"PodList","apiVersion":"v1",` +
		`"items":[{"kind":"Pod","apiVersion":"x/v1"}]}`,
	"a bare item in a List": `{"kind":"List","apiVersion":"v1","items":[{}]}`,
	"one that says half":    `{"kind":"PodList","apiVersion":"v1","items":[{"kind":"Pod"}]}`,
	"the other half":        `{"kind":"PodList","apiVersion":"v1","items":[{"apiVersion":"v1"}]}`,
}

// An answer that is no list of the expected objects is an error before it reaches a caller, even if
// it is empty: an empty list would delete all objects of a store.
func TestListWatch_WrongAnswersAreErrors(t *testing.T) {
	bodies := map[string][]byte{}
	for name, body := range wrongAnswers {
		bodies[name] = []byte(body)
	}
	for name, list := range map[string]runtime.Object{
		"protobuf, empty":     &v1.SecretList{},
		"protobuf, one":       &v1.SecretList{Items: make([]v1.Secret, 1)},
		"protobuf, discovery": &metav1.APIResourceList{},
	} {
		bodies[name] = answers.List(t, answers.Protobuf, list)
	}
	bodies["protobuf, no kind"] = []byte(decode.Magic + "\x0a\x00\x12\x00")
	for name, body := range bodies {
		for kind, lw := range listWatches(t, body) {
			t.Run(name+", "+kind, func(t *testing.T) {
				items, err := listed(lw)
				require.ErrorContains(t, err, "read list")
				require.Empty(t, items, "an object was handed over")
			})
		}
	}
}

// listWatches read pods from body: typed ones, and unstructured ones of a known kind.
func listWatches(t *testing.T, body []byte) map[string]*ListWatch {
	pod := Options{Kind: v1.SchemeGroupVersion.WithKind("Pod")}
	return map[string]*ListWatch{
		"typed":        answered(t, body, newPod, Options{}),
		"unstructured": answered(t, body, newUnstructured, pod),
	}
}

// Each of these is a list of pods.
func TestListWatch_RightAnswers(t *testing.T) {
	for body, want := range map[string]int{
		`{"kind":"PodList","apiVersion":"v1","items":[]}`:                                0,
		`{"kind":"PodList","apiVersion":"v1","items":null}`:                              0,
		`{"items":null,"apiVersion":"v1","kind":"PodList"}`:                              0,
		`{"items":[{}],"apiVersion":"v1","kind":"PodList"}`:                              1,
		`{"kind":"PodList","items":[{}],"apiVersion":"v1"}`:                              1,
		`{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1"}]}`:   1,
		`{"kind":"Herd","apiVersion":"x/v1","items":[{"kind":"Pod","apiVersion":"v1"}]}`: 1,
		`{"items":[{"kind":"Pod","apiVersion":"v1"}]}`:                                   1,
		string(answers.List(t, answers.Protobuf, &v1.PodList{})):                         0,
	} {
		for kind, lw := range listWatches(t, []byte(body)) {
			if kind == "unstructured" && body[0] != '{' {
				continue
			}
			items, err := listed(lw)
			require.NoError(t, err, body)
			require.Len(t, items, want, body)
		}
	}
}

// Not one of 1,000 items of another kind reaches the caller, even if the kind of their list comes
// after them.
func TestReadList_ChecksTheFirstItem(t *testing.T) {
	items := strings.Repeat(`{"metadata":{"name":"a"}},`, 999) + `{"metadata":{"name":"a"}}`
	for _, body := range []string{
		`{"kind":"SecretList","apiVersion":"v1","items":[` + items + `]}`,
		`{"items":[` + items + `],"kind":"SecretList","apiVersion":"v1"}`,
	} {
		got, _, err := decodeAll(strings.NewReader(body), newPod)
		require.ErrorContains(t, err, `expected a list of kind "PodList", got "SecretList"`)
		require.Empty(t, got)
	}
}

// A custom resource may name the kind of its list.
func TestListWatch_ListKind(t *testing.T) {
	body := []byte(`{"kind":"Herd","apiVersion":"v1","items":[]}`)
	_, err := listed(answered(t, body, newPod, Options{}))
	require.ErrorContains(t, err, `expected a list of kind "PodList" of "v1", got "Herd" of "v1"`)
	_, err = listed(answered(t, body, newPod, Options{ListKind: "Herd"}))
	require.NoError(t, err)
}

// Events of events.k8s.io have other fields than those of the core group, under the same kind.
func TestDifference_GroupAndVersionAreChecked(t *testing.T) {
	other := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Note: "text"}
	other.SetGroupVersionKind(eventsv1.SchemeGroupVersion.WithKind("Event"))
	newEvent := func() runtime.Object { return &v1.Event{} }
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		list := &eventsv1.EventList{Items: []eventsv1.Event{*other}}
		list.Items[0].TypeMeta = metav1.TypeMeta{}
		body := answers.List(t, contentType, list)
		_, err := listed(answered(t, body, newEvent, Options{}))
		require.ErrorContains(t, err, `expected a list of kind "EventList" of "v1", `+
			`got "EventList" of "events.k8s.io/v1"`)

		body = answers.Events(t, contentType, watch.Event{Type: watch.Added, Object: other})
		w, err := answered(t, body, newEvent, Options{}).Watch(metav1.ListOptions{})
		require.NoError(t, err)
		got := answers.Receive(w)
		require.Len(t, got, 1)
		require.IsType(t, &unstructured.Unstructured{}, got[0].Object)
		require.Equal(t, other.GroupVersionKind(), got[0].Object.GetObjectKind().GroupVersionKind())
	}
}

// With a known kind, the metadata of objects is read from servers that honour the request for
// metadata alone, and from those that do not, and of no other kind.
func TestListWatch_MetadataOfAKind(t *testing.T) {
	pod := v1.SchemeGroupVersion.WithKind("Pod")
	for _, test := range []struct {
		of   schema.GroupVersionKind
		good bool
	}{
		{partial, true}, {pod, true}, {v1.SchemeGroupVersion.WithKind("Secret"), false},
		{schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Pod"}, false},
	} {
		apiVersion, kind := test.of.ToAPIVersionAndKind()
		item := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"name":"a"}}`, kind, apiVersion)
		for _, body := range []string{
			fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"items":[]}`, kind+"List", apiVersion),
			fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"items":[{}]}`, kind+"List", apiVersion),
			fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"items":[%s]}`, kind+"List", apiVersion, item),
		} {
			_, err := listed(answered(t, []byte(body), newMetadata, Options{Kind: pod}))
			require.Equal(t, test.good, err == nil, "%s: %v", body, err)
		}
		events := bytes.Repeat([]byte(`{"type":"ADDED","object":`+item+`}`), 2)
		w, err := answered(t, events, newMetadata, Options{Kind: pod}).Watch(metav1.ListOptions{})
		require.NoError(t, err)
		got := answers.Receive(w)
		require.Len(t, got, 2)
		_, isMetadata := got[1].Object.(*metav1.PartialObjectMetadata)
		require.Equal(t, test.good, isMetadata, test.of)
	}
}
