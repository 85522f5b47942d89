// SPDX-License-Identifier: Apache-2.0

package decoding

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/tools/answers"
)

// custom are the codecs of a client for objects of the kind Custom, and lists of them, in
// example.com/v1.
func custom(obj, list runtime.Object) runtime.NegotiatedSerializer {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(gv.WithKind("Custom"), obj)
	s.AddKnownTypeWithName(gv.WithKind("CustomList"), list)
	metav1.AddToGroupVersion(s, gv)
	return serializer.NewCodecFactory(s).WithoutConversion()
}

// If a type keeps the bytes or writes into them, each object of a watch still has its own content.
func TestForeign_ObjectsOfAWatchKeepTheirOwnBytes(t *testing.T) {
	for name, foreign := range answers.Foreigns() {
		t.Run(name, func(t *testing.T) {
			var want, got []runtime.Object
			stream := ""
			for _, item := range foreign.Objects(50) {
				stream += `{"type":"ADDED","object":` + item + "}\n"
				alone := foreign.New()
				require.NoError(t, decode.Unmarshal([]byte(item), alone))
				want = append(want, alone)
			}
			clients := newTwins(t, custom(foreign.New(), &keptList{}), answers.JSON,
				strings.NewReader(stream))
			kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Custom"}
			for _, e := range clients.sameWatches(t).events {
				e.Object.GetObjectKind().SetGroupVersionKind(kind)
				got = append(got, e.Object)
			}
			require.Equal(t, want, got)
		})
	}
}

// The same for a list.
func TestForeign_ClientListKeepsItsBytes(t *testing.T) {
	var items []string
	for i := range 50 {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"a-%d"},"spec":"%d"}`, i, i))
	}
	body := `{"kind":"CustomList","apiVersion":"example.com/v1","items":[` +
		strings.Join(items, ",") + `]}`
	type (
		kept      = answers.Keeping[answers.KeptBytes]
		scribbled = answers.Keeping[answers.Scribbled]
	)
	clients := newTwins(t, custom(&kept{}, &answers.ListOf[[]kept]{}), answers.JSON,
		strings.NewReader(body))
	clients.sameLists(t, noList)

	clients = newTwins(t, custom(&scribbled{}, &answers.ListOf[[]scribbled]{}), answers.JSON,
		strings.NewReader(body))
	got := listAnswer(t.Context(), clients.faster, nil).list.(*answers.ListOf[[]scribbled])
	require.Len(t, got.Items, len(items))
	for i, item := range got.Items {
		require.Equal(t, fmt.Sprint("a-", i), item.Name)
		require.Equal(t, answers.Scribbled(fmt.Sprintf("%q", fmt.Sprint(i))), item.Spec)
	}
}

// The second decode of an object has nothing of the first one, which v2 has refused halfway.
func TestForeign_NothingOfARefusedDecodeInAList(t *testing.T) {
	type adding = answers.Keeping[answers.Added]
	const item = `{"kind":"Custom","apiVersion":"example.com/v1","spec":1,` +
		`"metadata":{"name":"a","name":"b"}}`
	clients := newTwins(t, custom(&adding{}, &answers.ListOf[[]adding]{}), answers.JSON,
		strings.NewReader(`{"kind":"CustomList","apiVersion":"example.com/v1","items":[`+
			item+","+item+`]}`))
	clients.sameLists(t, noList)
}
