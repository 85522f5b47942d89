// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/tools/answers"
)

// If a type keeps the bytes or writes into them, each object still has its own content. It works
// with client-go, because that decodes each event from bytes of its own.
func TestForeign_ObjectsKeepTheirOwnBytes(t *testing.T) {
	for name, foreign := range answers.Foreigns() {
		t.Run(name, func(t *testing.T) {
			var want []runtime.Object
			var events []string
			items := foreign.Objects(50)
			for _, item := range items {
				events = append(events, `{"type":"ADDED","object":`+item+"}\n")
				alone := foreign.New()
				require.NoError(t, decode.Unmarshal([]byte(item), alone))
				want = append(want, alone)
			}
			kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Custom"}
			list := `{"kind":"CustomList","apiVersion":"example.com/v1","items":[` +
				strings.Join(items, ",") + `]}`

			var got []runtime.Object
			_, err := ReadList(strings.NewReader(list), foreign.New, Options{Kind: kind},
				collect(&got))
			require.NoError(t, err)
			require.Equal(t, want, got)

			got = nil
			body := strings.NewReader(strings.Join(events, ""))
			for _, e := range receive(body, foreign.New, Options{Kind: kind}) {
				e.Object.GetObjectKind().SetGroupVersionKind(kind)
				got = append(got, e.Object)
			}
			require.Equal(t, want, got)
		})
	}
}

// The same for protobuf. TestNegotiator_UnmarshalKeepsProtobuf has clients of client-go.
func TestForeign_ObjectsKeepTheirOwnProtobuf(t *testing.T) {
	const count = 50
	var items, stream []byte
	of := runtime.TypeMeta{APIVersion: "v1", Kind: "Whole"}
	for i := range count {
		item := fmt.Appendf(nil, "%0*d", 1+i%7, i)
		items = protowire.AppendTag(items, listItems, protowire.BytesType)
		items = protowire.AppendBytes(items, item)
		envelope := &runtime.Unknown{TypeMeta: of, Raw: item}
		object := append([]byte(decode.Magic), answers.Marshal(t, envelope)...)
		event := answers.Marshal(t, &metav1.WatchEvent{
			Type: "ADDED", Object: runtime.RawExtension{Raw: object},
		})
		stream = append(append(stream, 0, 0, 0, byte(len(event))), event...)
	}
	newObject := func() runtime.Object { return &answers.Whole{} }
	var kept []runtime.Object
	_, err := ReadList(bytes.NewReader(listInProtobuf(items)), newObject,
		Options{ListKind: "PodList"}, collect(&kept))
	require.NoError(t, err)
	for _, e := range receive(bytes.NewReader(stream), newObject, Options{}) {
		kept = append(kept, e.Object)
	}
	require.Len(t, kept, 2*count)
	for i, obj := range kept {
		want := fmt.Sprintf("%0*d", 1+i%count%7, i%count)
		require.Equal(t, want, string(obj.(*answers.Whole).Raw))
	}
}
