// SPDX-License-Identifier: Apache-2.0

package decoding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"reflect"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/tools/answers"
)

// twins are two clients with the same answers: one of client-go, one with faster decoders.
type twins struct {
	plain, faster *rest.RESTClient
	answer        http.RoundTripper
}

func newTwins(
	t testing.TB, s runtime.NegotiatedSerializer, contentType string, body io.Reader,
) twins {
	text, err := io.ReadAll(body)
	return newTwinsOf(t, s, contentType, func() io.Reader {
		if err != nil {
			return io.MultiReader(bytes.NewReader(text), iotest.ErrReader(err))
		}
		return bytes.NewReader(text)
	})
}

func newTwinsOf(
	t testing.TB, s runtime.NegotiatedSerializer, contentType string, body func() io.Reader,
) twins {
	answer := &answers.Server{
		ContentType: contentType,
		Answer:      func(*http.Request) (int, io.Reader) { return http.StatusOK, body() },
	}
	plain := runtime.NewClientNegotiator(s, v1.SchemeGroupVersion)
	return twins{
		answers.ClientOf(t, plain, answer), answers.ClientOf(t, Faster()(plain), answer), answer,
	}
}

// outcome is all that a program can see of a request.
type outcome struct {
	list   runtime.Object
	err    string
	events []watch.Event
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%T: %v", err, err)
}

// listAnswer returns the outcome of a LIST into a list, or of a Get if into is nil.
func listAnswer(ctx context.Context, c *rest.RESTClient, into runtime.Object) (o outcome) {
	var err error
	if into == nil {
		o.list, err = c.Get().Resource("all").Do(ctx).Get()
	} else {
		o.list = into
		err = c.Get().Resource("all").Do(ctx).Into(into)
	}
	o.err = text(err)
	return o
}

func watchAll(ctx context.Context, c *rest.RESTClient) (o outcome) {
	w, err := c.Get().Resource("all").Watch(ctx)
	if o.err = text(err); err == nil {
		o.events = answers.Receive(w)
	}
	return o
}

func (c twins) sameLists(t testing.TB, newList func() runtime.Object, more ...any) outcome {
	want := listAnswer(t.Context(), c.plain, newList())
	got := listAnswer(t.Context(), c.faster, newList())
	if !reflect.DeepEqual(want, got) {
		require.Equal(t, want, got, more...)
		require.Fail(t, "the lists differ", more...)
	}
	return got
}

func (c twins) sameWatches(t testing.TB, more ...any) outcome {
	want, got := watchAll(t.Context(), c.plain), watchAll(t.Context(), c.faster)
	if !reflect.DeepEqual(want, got) {
		require.Equal(t, want, got, more...)
		require.Fail(t, "the events differ", more...)
	}
	return got
}

func noList() runtime.Object { return nil }

var (
	typed        = scheme.Codecs.WithoutConversion()
	metadataOnly = metainternalversionscheme.Codecs.WithoutConversion()
	dynamicOnly  = dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
)

// Random objects of every kind are decoded as by client-go's clients: typed, dynamic and metadata
// ones, in lists and watches, in JSON and protobuf.
func TestNegotiator_EveryKind(t *testing.T) {
	for i, c := range answers.Collections() {
		all, items := c.Fuzzed(t, int64(i))
		var events []watch.Event
		for _, obj := range items {
			events = append(events, watch.Event{Type: watch.Modified, Object: obj})
		}
		newList := func() runtime.Object { return answers.New(c.List) }
		newUnstructured := func() runtime.Object { return &unstructured.UnstructuredList{} }
		for _, contentType := range []string{answers.JSON, answers.Protobuf} {
			if contentType == answers.Protobuf && !readsProtobuf(c) {
				continue
			}
			body := bytes.NewReader(answers.List(t, contentType, all))
			lists := newTwins(t, typed, contentType, body)
			lists.sameLists(t, noList, c.Kind)
			require.Empty(t, lists.sameLists(t, newList, c.Kind).err)
			body = bytes.NewReader(answers.Events(t, contentType, events...))
			got := newTwins(t, typed, contentType, body).sameWatches(t, c.Kind)
			require.Len(t, got.events, len(items))
		}
		body := bytes.NewReader(answers.List(t, answers.JSON, all))
		lists := newTwins(t, dynamicOnly, answers.JSON, body)
		require.Empty(t, lists.sameLists(t, newUnstructured, c.Kind).err)
		lists.sameLists(t, noList, c.Kind)
		body = bytes.NewReader(answers.Events(t, answers.JSON, events...))
		got := newTwins(t, dynamicOnly, answers.JSON, body).sameWatches(t, c.Kind)
		require.Len(t, got.events, len(items))
	}
}

func readsProtobuf(c answers.Collection) bool {
	newObject := func() runtime.Object { return answers.New(c.Of) }
	return decode.New(newObject, decode.NewShared()).ReadsProtobuf
}

// FuzzNegotiator looks for an answer that a client decodes in another way with faster decoders:
// another object, another error or another text of it.
func FuzzNegotiator(f *testing.F) {
	silenceKlog(f)
	pods := &v1.PodList{}
	decoder := scheme.Codecs.UniversalDeserializer()
	require.NoError(f, runtime.DecodeInto(decoder, answers.Pods(f, 2), pods))
	bodies := map[string][]byte{}
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		bodies["list "+contentType] = answers.List(f, contentType, pods)
		bodies["watch "+contentType] = answers.Events(f, contentType, answers.Samples()[:4]...)
	}
	random := rand.New(rand.NewSource(1))
	for _, body := range bodies {
		f.Add(body)
		for range 20 {
			f.Add(mutateAny(random, mutateAny(random, body)))
		}
	}
	for _, event := range oddEvents {
		f.Add([]byte(usualEvent + event + usualEvent))
	}
	for _, list := range oddLists {
		f.Add([]byte(list))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, newList := range newLists {
			for _, s := range []runtime.NegotiatedSerializer{typed, metadataOnly, dynamicOnly} {
				newTwins(t, s, answers.JSON, bytes.NewReader(body)).sameLists(t, newList)
			}
			newTwins(t, typed, answers.Protobuf, bytes.NewReader(body)).sameLists(t, newList)
		}
		for _, s := range []runtime.NegotiatedSerializer{typed, metadataOnly, dynamicOnly} {
			newTwins(t, s, answers.JSON, bytes.NewReader(body)).sameWatches(t)
		}
		newTwins(t, typed, answers.Protobuf, bytes.NewReader(body)).sameWatches(t)
	})
}

var newLists = []func() runtime.Object{
	noList,
	func() runtime.Object { return &v1.PodList{} },
	func() runtime.Object { return &unstructured.UnstructuredList{} },
	func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
	func() runtime.Object { return &v1.List{} },
	func() runtime.Object { return &v1.Pod{} },
	func() runtime.Object { return noPointer{} },
	func() runtime.Object { // with a content, which stays where the answer has no other
		old := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "old"}}
		return &v1.PodList{Items: []v1.Pod{old}, ListMeta: metav1.ListMeta{Continue: "old"}}
	},
}

const usualEvent = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",` +
	`"metadata":{"name":"a"}}}` + "\n"

var oddEvents = []string{
	" \n\t", "[]", "null", "5", `{}`, `{"type":"ADDED"}`, `{"object":{}}`, `}`, `<html>`, "\xff",
	` { "object" : { "apiVersion" : "v1", "kind" : "Pod" } , "type" : "MODIFIED" } `,
	`{"type":"ADDED","type":"DELETED","object":{"kind":"Pod","apiVersion":"v1"}}`,
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"},"object":null}`,
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"},"more":[1]}`,
	`{"kind":"Pod","type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`,
	`{"Type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`,
	`{"type":"added","object":{"kind":"Pod","apiVersion":"v1"}}`,
	`{"type":5,"object":{"kind":"Pod","apiVersion":"v1"}}`,
	`{"type":5,"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`,
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"},"a":{"kind":"A","apiVersion":"v1"}}`,
	`{"type":"\u0041DDED","obj\u0065ct":{"k\u0069nd":"Pod","apiVersion":"v1"}}`,
	`{"type":"ADDED","object":{"kind":"Pod","kind":"Node","apiVersion":"v1"}}`,
	`{"type":"ADDED","object":{"kind":"Pod","Kind":"Node","apiVersion":"v1"}}`,
	`{"type":"ADDED","object":{"kind":"Pod","\u212aind":"Node","apiVersion":"v1"}}`,
	`{"type":"ADDED","object":{"kind":"Pod","kind":null,"apiVersion":"v1","apiVersion":5}}`,
	`{"type":"ADDED","object":{"apiVersion":5,"kind":"Pod","apiVersion":"v1"}}`,
	`{"type":"ADDED","object":{"kind":{},"apiVersion":"v1","kind":"Pod"}}`,
	`{"type":"ADDED","object":{"kind":null,"apiVersion":"v1","kind":"Pod"}}`,
	`{"type":"ADDED","object":{"Kind":"Pod","APIVersion":"v1"}}`,
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":null}}`,
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"a/b/c"}}`,
	`{"type":"ADDED","object":{"kind":"Other","apiVersion":"x/v1"}}`,
	`{"type":"ADDED","object":{"kind":"PodList","apiVersion":"v1","items":[{}]}}`,
	`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410}}`,
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":5}}}`,
	`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","name":"b"}}}`,
}

var oddLists = []string{
	`{"kind":"PodList","apiVersion":"v1","items":[{}],"items":[{}]}`,
	`{"kind":"PodList","apiVersion":"v1","items":[{}],"it\u0065ms":[{},{}]}`,
	`{"kind":"PodList","apiVersion":"v1","items":[{},null,5]}`,
	`{"kind":"PodList","apiVersion":"v1","items":{}}`,
	`{"kind":"PodList","apiVersion":"v1","Items":[{}],"items":[{"metadata":{"name":"a"}}]}`,
	`{"Kind":"PodList","apiVersion":"v1","items":[{}]}`,
	`{"items":[{"metadata":{"name":"a"}}]}`, `{"items":[{}]} {}`, `{"items":[{}]}]`, `[{}]`,
	` { "items" : [ {"kind":"Foo"} , {"apiVersion":"v1"} ] , "kind" : "List" , "apiVersion":"v1"}`,
	`{"kind":"NodeList","apiVersion":"v1","items":[{"spec":{"taints":[{"key":"a"}]}}]}`,
	`{"kind":"Status","apiVersion":"v1","status":"Failure","items":[{}]}`,
	`{"kind":"Pod","apiVersion":"v1","items":[{}],"metadata":{"name":"a"}}`,
	`{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1"}]}`,
	`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":5},"items":[{}]}`,
	`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":5}}]}`,
	`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a","name":"b"}}]}`,
}

// mutateAny changes a value of a JSON text, or bytes.
func mutateAny(random *rand.Rand, text []byte) []byte {
	text = bytes.Clone(text)
	if len(text) == 0 {
		return text
	}
	at := random.Intn(len(text))
	switch random.Intn(8) {
	case 0:
		text[at] = byte(random.Intn(256))
	case 1:
		return append(text[:at:at], text[min(at+random.Intn(20), len(text)):]...)
	case 2:
		with := answers.Replacements[random.Intn(len(answers.Replacements))]
		return append(append(text[:at:at], with...), text[at:]...)
	default:
		if text[0] == '{' {
			return answers.Mutate(random, text)
		}
	}
	return text
}

// A connection that is lost at any byte ends a watch in the same way, and a LIST with the same
// error.
func TestNegotiator_CutAnywhere(t *testing.T) {
	lost := map[string]error{
		"end": nil, "reset": syscall.ECONNRESET, "timeout": os.ErrDeadlineExceeded,
		"unexpected": io.ErrUnexpectedEOF, "other": errors.New("other"),
	}
	silenceKlog(t)
	pods := &v1.PodList{}
	decoder := scheme.Codecs.UniversalDeserializer()
	require.NoError(t, runtime.DecodeInto(decoder, answers.Pods(t, 1), pods))
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		events := answers.Events(t, contentType, answers.Samples()[:2]...)
		list := answers.List(t, contentType, pods)
		for name, err := range lost {
			cut := func(body []byte, at int) io.Reader {
				if err == nil {
					return bytes.NewReader(body[:at])
				}
				return io.MultiReader(bytes.NewReader(body[:at]), iotest.ErrReader(err))
			}
			for at := 0; at <= len(events); at++ {
				newTwins(t, typed, contentType, cut(events, at)).
					sameWatches(t, "%s %s at %d", contentType, name, at)
			}
			for at := 0; at <= len(list); at++ {
				newTwins(t, typed, contentType, cut(list, at)).
					sameLists(t, noList, "%s %s at %d", contentType, name, at)
			}
		}
	}
}

// silenceKlog drops the log of client-go during a test.
func silenceKlog(t testing.TB) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
}
