// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/tools/answers"
)

// broken is a pod with a decoder that panics at the name "panic".
type broken struct{ v1.Pod }

func (b *broken) UnmarshalJSON(raw []byte) error {
	if bytes.Contains(raw, []byte(`"name":"panic"`)) {
		panic("broken")
	}
	return nil
}

func newBroken() runtime.Object { return &broken{} }

// brokenList is a list in JSON; broken panics at its item at.
func brokenList(count, at int) []byte {
	body := []byte(`{"kind":"brokenList","apiVersion":"v1","items":[`)
	for i := range count {
		name := "a"
		if i == at {
			name = "panic"
		}
		body = fmt.Appendf(body, `{"metadata":{"name":"%s"},"more":%q},`, name,
			strings.Repeat("a", 100))
	}
	return append(body[:len(body)-1], "]}"...)
}

// A panic of a decoder or of a body is the caller's, after the objects before it, in whatever
// goroutine it happened.
func TestReadList_Panics(t *testing.T) {
	half := strings.NewReader(`{"kind":"brokenList","apiVersion":"v1","items":[{},{}`)
	for at, body := range map[int]io.Reader{
		0:    bytes.NewReader(brokenList(5000, 0)),
		1:    bytes.NewReader(brokenList(5000, 1)),
		500:  bytes.NewReader(brokenList(5000, 500)),
		4999: bytes.NewReader(brokenList(5000, 4999)),
		2:    io.MultiReader(half, panicReader{}),
	} {
		synctest.Test(t, func(t *testing.T) {
			var items []runtime.Object
			require.PanicsWithValue(t, "broken", func() {
				_, _ = ReadList(body, newBroken, Options{}, collect(&items))
			})
			require.Len(t, items, at)
		})
	}
}

type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("broken") }

// A panic while a watch is read is handled as in client-go, and closes the watch and its body.
func TestReadWatch_Panics(t *testing.T) {
	handlers := utilruntime.PanicHandlers
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = true, handlers }()
	const event = `{"type":"ADDED","object":{"kind":"broken","apiVersion":"v1","name":"panic"}}`
	for _, in := range []io.Reader{strings.NewReader(event), panicReader{}} {
		synctest.Test(t, func(t *testing.T) {
			var panics []any
			utilruntime.PanicHandlers = []func(context.Context, any){
				func(_ context.Context, panicked any) { panics = append(panics, panicked) },
			}
			body := &closeCounter{Reader: in}
			require.Empty(t, answers.Receive(ReadWatch(body, newBroken, Options{})))
			synctest.Wait()
			require.EqualValues(t, 1, body.count.Load())
			require.Equal(t, []any{"broken"}, panics)
		})
	}
}

// closeCounter counts the calls of Close.
type closeCounter struct {
	io.Reader
	count atomic.Int32
}

func (c *closeCounter) Close() error {
	c.count.Add(1)
	return nil
}

// The body is closed once, as by client-go.
func TestReadWatch_ClosesOnce(t *testing.T) {
	body := &closeCounter{Reader: strings.NewReader("")}
	w := ReadWatch(body, newPod, Options{})
	for range w.ResultChan() {
	}
	w.Stop()
	w.Stop()
	require.EqualValues(t, 1, body.count.Load())
}

// Stop closes the body, so that a Read fails. That is no error of the server.
func TestReadWatch_StopIsNoError(t *testing.T) {
	for range 50 { // an ERROR event would be sent or not, at random
		synctest.Test(t, func(t *testing.T) {
			body, _ := io.Pipe()
			w := ReadWatch(body, newPod, Options{})
			synctest.Wait()
			go w.Stop()
			require.Empty(t, answers.Receive(w))
		})
	}
}

// slow is a pod with a decoder that waits, and then fails.
type slow struct {
	v1.Pod
	until <-chan struct{}
}

func (s *slow) UnmarshalJSON([]byte) error {
	<-s.until
	return io.ErrClosedPipe
}

// A stopped watch sends neither the event that it still decodes nor an error.
func TestReadWatch_StopDuringADecodeThatFails(t *testing.T) {
	for range 50 { // it would be sent or not, at random
		synctest.Test(t, func(t *testing.T) {
			until := make(chan struct{})
			newSlow := func() runtime.Object { return &slow{until: until} }
			body := strings.NewReader(`{"type":"ADDED","object":{"kind":"slow"}}`)
			w := ReadWatch(io.NopCloser(body), newSlow, Options{})
			synctest.Wait()
			w.Stop()
			close(until)
			require.Empty(t, answers.Receive(w))
		})
	}
}

// Unstructured objects keep their kind, even if it is set in Options.
func TestReadWatch_UnstructuredOfAKind(t *testing.T) {
	body := answers.Events(t, answers.JSON, answers.Samples()[0])
	options := Options{Kind: v1.SchemeGroupVersion.WithKind("Pod")}
	got := receive(bytes.NewReader(body), newUnstructured, options)
	require.Len(t, got, 1)
	u := got[0].Object.(*unstructured.Unstructured)
	require.Equal(t, "v1 Pod", u.GetAPIVersion()+" "+u.GetKind())
}

// An event in protobuf is an ERROR event if the type cannot be decoded from protobuf, or its bytes
// are wrong. It is neither an empty object nor a cut connection.
func TestReadWatch_BadProtobuf(t *testing.T) {
	status := apierrors.NewResourceExpired("too old").Status()
	pod := answers.Events(t, answers.Protobuf, answers.Samples()[0])
	failed := answers.Events(t, answers.Protobuf, watch.Event{Type: watch.Error, Object: &status})
	i := bytes.LastIndex(failed, []byte("Failure"))
	failed[i-1] = 100 // the length of the string
	framed := func(message string) []byte {
		return append([]byte{0, 0, 0, byte(len(message))}, message...)
	}
	field := func(tag, value string) string { return tag + string(rune(len(value))) + value }
	added := func(object string) []byte {
		return framed(field("\x0a", "ADDED") + field("\x12", object))
	}
	envelope := func(typeMeta string) []byte {
		return added(field("\x0a", "k8s\x00\x0a"+typeMeta))
	}
	for name, test := range map[string]struct {
		body      []byte
		newObject NewObject
		want      string
	}{
		"unstructured":         {pod, newUnstructured, "it is not read from protobuf"},
		"Status of wrong size": {failed, newPod, "unexpected EOF"},
		"truncated message":    {framed("\x12\x05"), newPod, "not protobuf"},
		"truncated object":     {added("\x0a\x09"), newPod, "not protobuf"},
		"truncated envelope":   {envelope("\x09"), newPod, "not protobuf"},
		"no kind":              {envelope("\x04\x0a\x02v1"), newPod, "the object has no"},
		"no version":           {envelope("\x03\x12\x01A"), newPod, "the object has no"},
		"truncated kind":       {envelope("\x02\x0a\x09"), newPod, "not protobuf"},
	} {
		t.Run(name, func(t *testing.T) {
			got := receive(bytes.NewReader(test.body), test.newObject, Options{})
			require.Len(t, got, 1)
			err := apierrors.FromObject(got[0].Object)
			require.True(t, apierrors.HasStatusCause(err, "ClientWatchDecoding"))
			require.ErrorContains(t, err, test.want)
		})
	}
}

// Items without a kind keep their place among those that have one.
func TestReadList_OrderOfKindlessItems(t *testing.T) {
	items, _, err := decodeAll(iotest.OneByteReader(strings.NewReader(
		`{"items":[{"metadata":{"name":"a"}},{"kind":"Foo","apiVersion":"v1",`+
			`"metadata":{"name":"b"}}],"kind":"PodList","apiVersion":"v1"}`)), newUnstructured)
	require.NoError(t, err)
	require.Len(t, items, 2)
	for i, want := range []string{"Pod a", "Foo b"} {
		u := items[i].(*unstructured.Unstructured)
		require.Equal(t, want, u.GetKind()+" "+u.GetName())
	}
}

// nested is a type that contains itself. Its Unmarshal could be made to call itself without end.
type nested struct {
	v1.Pod
	Inner []*nested
}

func (n *nested) DeepCopyObject() runtime.Object { return n }
func (n *nested) Reset()                         {}
func (n *nested) Unmarshal([]byte) error         { panic("not called") }

// A type that contains itself is requested in JSON, and not read from protobuf.
func TestReadList_NestedTypesAreNotReadFromProtobuf(t *testing.T) {
	newNested := func() runtime.Object { return &nested{} }
	lw := NewListWatch(answers.Client(t, &answers.Server{}), "pods", "", newNested, Options{})
	require.Equal(t, mediaJSON, lw.listAs)
	require.Equal(t, mediaJSON, lw.watchAs)
	body := answers.List(t, answers.Protobuf, &v1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: make([]v1.Pod, 1),
	})
	_, err := ReadList(bytes.NewReader(body), newNested, Options{}, ignore)
	require.ErrorContains(t, err, "it is not read from protobuf")
}

// Fields of an event that are unknown are skipped, and an object of another kind, which may be one
// that cannot be decoded, is not lost.
func TestReadWatch_UnusualEvents(t *testing.T) {
	for _, test := range []struct{ event, want string }{
		{
			`{"a":"DELETED","type":"ADDED","b":[1],"object":{"kind":"Pod","apiVersion":"v1"},` +
				`"c":"X"}`,
			"ADDED *v1.Pod ",
		},
		{
			`{"type":"ADDED","object":{"kind":"Foo","apiVersion":"v1","spec":5}}`,
			"ADDED *unstructured.Unstructured ",
		},
		{
			`{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}}`,
			"ADDED *unstructured.Unstructured ",
		},
		{
			`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","spec":5}}`,
			"ERROR *v1.Status decode *v1.Pod",
		},
		{
			`{"type":"ADDED","object":{"kind":"Status","apiVersion":"v1","code":"x"}}`,
			"ERROR *v1.Status json: cannot unmarshal string",
		},
		{
			`{"type":"ADDED","object":{"kind":"A"},"object":{"kind":"Pod","apiVersion":"v1"}}`,
			"ADDED *v1.Pod ",
		},
		{`{"type":"ADDED","object":{"apiVersion":"v1"}}`, "ERROR *v1.Status the object has no"},
		{`{"type":"ADDED","object":{"kind":"Pod"}}`, "ERROR *v1.Status the object has no"},
	} {
		got := receive(strings.NewReader(test.event), newPod, Options{})
		require.Len(t, got, 1, test.event)
		message := ""
		if status, ok := got[0].Object.(*metav1.Status); ok {
			message = status.Message
		}
		_, cause, _ := strings.Cut(message, " 0 events: ")
		require.Contains(t, fmt.Sprintf("%s %T %s", got[0].Type, got[0].Object, cause), test.want,
			test.event)
	}
}
