// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// twins are two clients with the same answers: one of client-go, one with faster decoders.
type twins struct{ plain, faster *rest.RESTClient }

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
	gv := schema.GroupVersion{Version: "v1"}
	answer := &roundTripper{contentType: contentType, answer: func(*http.Request) (int, io.Reader) {
		return http.StatusOK, body()
	}}
	client := func(n runtime.ClientNegotiator) *rest.RESTClient {
		c, err := rest.NewRESTClient(&url.URL{Scheme: "http", Host: "server"}, "/apis",
			rest.ClientContentConfig{GroupVersion: gv, Negotiator: n}, nil,
			&http.Client{Transport: answer})
		require.NoError(t, err)
		return c
	}
	plain := runtime.NewClientNegotiator(s, gv)
	return twins{client(plain), client(NewNegotiator().Faster(plain))}
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

// list returns the outcome of a LIST into a list, or of a Get if it is nil.
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
		o.events = receiveAll(w)
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
)

func dynamicSerializer() runtime.NegotiatedSerializer {
	return dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
}

// Random objects of every kind are decoded as by client-go's clients: typed, dynamic and metadata
// ones, in lists and watches, in JSON and protobuf.
func TestNegotiator_EveryKind(t *testing.T) {
	for i, c := range collections() {
		all, items := c.fuzzed(t, int64(i))
		var events []watch.Event
		for _, obj := range items {
			events = append(events, watch.Event{Type: watch.Modified, Object: obj})
		}
		newList := func() runtime.Object { return newOf(c.list) }
		newUnstructured := func() runtime.Object { return &unstructured.UnstructuredList{} }
		for _, contentType := range []string{jsonStream, protobufStream} {
			if contentType == protobufStream && !readsProtobuf(newOf(c.of)) {
				continue
			}
			body := bytes.NewReader(encodeList(t, contentType, all))
			lists := newTwins(t, typed, contentType, body)
			lists.sameLists(t, noList, c.gvk)
			require.Empty(t, lists.sameLists(t, newList, c.gvk).err)
			body = bytes.NewReader(encodeEvents(t, contentType, events...))
			got := newTwins(t, typed, contentType, body).sameWatches(t, c.gvk)
			require.Len(t, got.events, len(items))
		}
		body := bytes.NewReader(encodeList(t, jsonStream, all))
		lists := newTwins(t, dynamicSerializer(), jsonStream, body)
		require.Empty(t, lists.sameLists(t, newUnstructured, c.gvk).err)
		lists.sameLists(t, noList, c.gvk)
		body = bytes.NewReader(encodeEvents(t, jsonStream, events...))
		got := newTwins(t, dynamicSerializer(), jsonStream, body).sameWatches(t, c.gvk)
		require.Len(t, got.events, len(items))
	}
}

// Texts that are changed at random have the same objects or the same errors.
func TestNegotiator_Mutations(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	bodies := map[string][]byte{
		"list":  podList(t, 2),
		"watch": encodeEvents(t, jsonStream, contents()...),
	}
	newLists := []func() runtime.Object{
		noList, func() runtime.Object { return &v1.PodList{} },
		func() runtime.Object { return &unstructured.UnstructuredList{} },
		func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
	}
	serializers := []runtime.NegotiatedSerializer{typed, metadataOnly, dynamicSerializer()}
	usual := 0
	for range 300 {
		changed := bodies["list"]
		for range 1 + random.Intn(3) {
			changed = mutateAny(random, changed)
		}
		for _, s := range serializers {
			newList := newLists[random.Intn(len(newLists))]
			o := newTwins(t, s, jsonStream, bytes.NewReader(changed)).
				sameLists(t, newList, "%T %s", s, changed)
			if o.err == "" {
				usual++
			}
		}
		changed = bodies["watch"]
		for range 1 + random.Intn(3) {
			changed = mutateAny(random, changed)
		}
		for _, s := range serializers {
			newTwins(t, s, jsonStream, bytes.NewReader(changed)).sameWatches(t, "%T %s", s, changed)
		}
	}
	require.Greater(t, usual, 100)
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
		with := replacements[random.Intn(len(replacements))]
		return append(append(text[:at:at], with...), text[at:]...)
	default:
		if text[0] == '{' {
			return mutate(random, text)
		}
	}
	return text
}

// A connection that is lost at any byte ends a watch in the same way, and a LIST with the same
// error.
func TestNegotiator_CutAnywhere(t *testing.T) {
	lost := map[string]error{
		"end": nil, "reset": errors.New("connection reset by peer"),
		"unexpected": io.ErrUnexpectedEOF,
	}
	pods := &v1.PodList{}
	decoder := scheme.Codecs.UniversalDeserializer()
	require.NoError(t, runtime.DecodeInto(decoder, podList(t, 1), pods))
	for _, contentType := range []string{jsonStream, protobufStream} {
		events := encodeEvents(t, contentType, contents()[:2]...)
		list := encodeList(t, contentType, pods)
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
