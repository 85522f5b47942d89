// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the replacement of Raw is newer than the oldest client-go of this module

package decoding

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/tools/answers"
)

// jsonWith is a serializer of JSON with client-go's usual parts.
func jsonWith(options jsonserializer.SerializerOptions) runtime.Serializer {
	return jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory,
		scheme.Scheme, scheme.Scheme, options)
}

// negotiated are the codecs of a client; s decodes its objects.
func negotiated(s runtime.Serializer) runtime.NegotiatedSerializer {
	return runtime.NewSimpleNegotiatedSerializer(runtime.SerializerInfo{
		MediaType: runtime.ContentTypeJSON, Serializer: s,
		StreamSerializer: &runtime.StreamSerializerInfo{
			Serializer: jsonWith(jsonserializer.SerializerOptions{}), Framer: jsonserializer.Framer,
		},
	})
}

// watchParts are a client's own parts of a watch, and a watch made of them.
type watchParts struct {
	decoder runtime.Decoder
	events  runtime.Serializer
	framer  runtime.Framer
	codec   codec
}

func watchPartsOf(t *testing.T, s runtime.NegotiatedSerializer, contentType string) watchParts {
	mediaType, _, _ := strings.Cut(contentType, ";")
	decoder, events, framer, err := runtime.NewClientNegotiator(s, v1.SchemeGroupVersion).
		StreamDecoder(mediaType, nil)
	require.NoError(t, err)
	c, ok := codecOf(reflect.ValueOf(decoder))
	require.True(t, ok)
	return watchParts{decoder, events, framer, c}
}

func (p watchParts) watch(maxEvent int) *clientWatch {
	return newClientWatch(p.codec, p.framer, p.events, p.decoder,
		faster{shared: decode.NewSharedStrings(), maxEvent: maxEvent})
}

// N1: only decoders that are known to neither convert nor set defaults are replaced.
func TestNegotiator_LeavesOtherDecoders(t *testing.T) {
	jsonOf := func(meta jsonserializer.MetaFactory, options jsonserializer.SerializerOptions,
	) runtime.NegotiatedSerializer {
		return negotiated(jsonserializer.NewSerializerWithOptions(
			meta, scheme.Scheme, scheme.Scheme, options))
	}
	usual := jsonserializer.DefaultMetaFactory
	off := jsonserializer.SerializerOptions{}
	isYAML := jsonserializer.SerializerOptions{Yaml: true}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)
	for name, test := range map[string]struct {
		s           runtime.NegotiatedSerializer
		contentType string
		faster      bool
	}{
		"typed":               {typed, runtime.ContentTypeJSON, true},
		"typed, protobuf":     {typed, runtime.ContentTypeProtobuf, true},
		"dynamic":             {dynamicOnly, runtime.ContentTypeJSON, true},
		"metadata":            {metadataOnly, runtime.ContentTypeProtobuf, true},
		"one serializer":      {jsonOf(usual, off), runtime.ContentTypeJSON, true},
		"converts":            {scheme.Codecs, runtime.ContentTypeJSON, false},
		"converts protobuf":   {scheme.Codecs, runtime.ContentTypeProtobuf, false},
		"yaml":                {typed, "application/yaml", false},
		"strict":              {strict.WithoutConversion(), runtime.ContentTypeJSON, false},
		"other kinds":         {jsonOf(otherMeta{}, off), runtime.ContentTypeJSON, false},
		"yaml as JSON":        {jsonOf(usual, isYAML), runtime.ContentTypeJSON, false},
		"unknown serializer":  {sets{typed}, runtime.ContentTypeJSON, false},
		"unknown for streams": {sets{typed}, runtime.ContentTypeProtobuf, false},
	} {
		plain := runtime.NewClientNegotiator(test.s, v1.SchemeGroupVersion)
		faster := Faster()(plain)
		decoder, err := faster.Decoder(test.contentType, nil)
		require.NoError(t, err, name)
		isFaster := reflect.TypeOf(decoder) == reflect.TypeFor[clientList]()
		require.Equal(t, test.faster, isFaster, name)
		want, wantSerializer, wantFramer, wantErr := plain.StreamDecoder(test.contentType, nil)
		got, gotSerializer, gotFramer, err := faster.StreamDecoder(test.contentType, nil)
		require.Equal(t, wantErr, err, name)
		require.Equal(t, test.faster, reflect.TypeOf(got) == reflect.TypeFor[eventDecoder](), name)
		if !test.faster && err == nil {
			require.Equal(t, wantSerializer, gotSerializer, name)
			require.Equal(t, wantFramer, gotFramer, name)
			require.Equal(t, reflect.TypeOf(want), reflect.TypeOf(got), name)
		}
	}
	_, err := Faster()(runtime.NewClientNegotiator(typed, v1.SchemeGroupVersion)).
		Decoder("text/html", nil)
	require.ErrorAs(t, err, &runtime.NegotiateError{})
}

// N1: a serializer of a version with other fields is unknown.
func TestNegotiator_SerializerWithOtherFields(t *testing.T) {
	type options struct{ Yaml, Strict bool }
	type known struct {
		options options
		meta    jsonserializer.MetaFactory
	}
	usual := jsonserializer.DefaultMetaFactory
	require.True(t, isPlainJSON(reflect.ValueOf(known{options{}, usual})))
	for _, other := range []any{
		known{options{Strict: true}, usual}, known{options{}, nil},
		struct{ meta jsonserializer.MetaFactory }{usual},
		struct{ options options }{options{}},
		struct{ options *options }{&options{}},
		struct{ options struct{ Yaml bool } }{},
	} {
		require.False(t, isPlainJSON(reflect.ValueOf(other)), "%T", other)
	}
}

// targetZeroingDecoder has the name of a decoder of controller-runtime.
type targetZeroingDecoder struct{ runtime.Decoder }

// N1: a decoder without a serializer, and one that is only called as a known one, are unknown.
func TestNegotiator_NoSerializer(t *testing.T) {
	for _, decoder := range []runtime.Decoder{
		nil, (*jsonserializer.Serializer)(nil),
		targetZeroingDecoder{jsonWith(jsonserializer.SerializerOptions{})},
	} {
		_, ok := codecOf(reflect.ValueOf(decoder))
		require.False(t, ok, "%T", decoder)
	}
}

// N1: the parts of a watch are replaced if all three are known, and belong together.
func TestNegotiator_PartsOfAWatch(t *testing.T) {
	plain := jsonWith(jsonserializer.SerializerOptions{})
	strict := jsonWith(jsonserializer.SerializerOptions{Strict: true})
	whole := protobufserializer.NewSerializer(scheme.Scheme, scheme.Scheme)
	raw := protobufserializer.NewRawSerializer(scheme.Scheme, scheme.Scheme)
	for _, test := range []struct {
		codec  codec
		events runtime.Serializer
		framer runtime.Framer
		want   bool
	}{
		{codec{}, plain, jsonserializer.Framer, true},
		{codec{bare: true}, plain, jsonserializer.Framer, true},
		{codec{}, strict, jsonserializer.Framer, false},
		{codec{}, whole, jsonserializer.Framer, false},
		{codec{}, raw, jsonserializer.Framer, false},
		{codec{}, plain, protobufserializer.LengthDelimitedFramer, false},
		{codec{protobuf: true}, raw, protobufserializer.LengthDelimitedFramer, true},
		{codec{protobuf: true}, whole, protobufserializer.LengthDelimitedFramer, false},
		{codec{protobuf: true}, raw, jsonserializer.Framer, false},
	} {
		require.Equal(t, test.want, test.codec.isOfEvents(test.events, test.framer), "%+v", test)
	}
}

// otherMeta takes every object for a Node.
type otherMeta struct{}

func (otherMeta) Interpret([]byte) (*schema.GroupVersionKind, error) {
	return new(v1.SchemeGroupVersion.WithKind("Node")), nil
}

// sets is a serializer that sets a default.
type sets struct{ runtime.NegotiatedSerializer }

type setsDefault struct{ runtime.Decoder }

func (s sets) DecoderToVersion(d runtime.Decoder, v runtime.GroupVersioner) runtime.Decoder {
	return setsDefault{s.NegotiatedSerializer.DecoderToVersion(d, v)}
}

func (s setsDefault) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := s.Decoder.Decode(data, defaults, into)
	if pod, ok := obj.(*v1.Pod); ok {
		pod.Spec.NodeName = "default"
	}
	return obj, gvk, err
}

// If a client creates the objects of a kind with a content, it decodes them itself.
func TestNegotiator_CreatorWithDefaults(t *testing.T) {
	s := negotiated(jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory,
		createsWithDefault{scheme.Scheme}, scheme.Scheme, jsonserializer.SerializerOptions{}))
	got := newTwins(t, s, answers.JSON, strings.NewReader(usualEvent)).sameWatches(t)
	require.Equal(t, "default", got.events[0].Object.(*v1.Pod).Spec.NodeName)
	list := `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`
	got = newTwins(t, s, answers.JSON, strings.NewReader(list)).sameLists(t, noList)
	require.Equal(t, "default", got.list.(*v1.PodList).Items[0].Spec.NodeName)
}

type createsWithDefault struct{ runtime.ObjectCreater }

func (c createsWithDefault) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	pod := v1.Pod{Spec: v1.PodSpec{NodeName: "default"}}
	switch gvk.Kind {
	case "Pod":
		return &pod, nil
	case "PodList":
		return &v1.PodList{Items: []v1.Pod{pod}}, nil
	}
	return c.ObjectCreater.New(gvk)
}

// N3, and a proof that usual answers do not reach the client's own decoders, which share nothing.
func TestNegotiator_SharesStrings(t *testing.T) {
	list := &v1.PodList{Items: []v1.Pod{*answers.Owned(0), *answers.Owned(1)}}
	list.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("PodList"))
	events := []watch.Event{
		{Type: watch.Added, Object: answers.Owned(0)},
		{Type: watch.Added, Object: answers.Owned(1)},
	}
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		body := answers.List(t, contentType, list)
		read := newTwins(t, typed, contentType, bytes.NewReader(body)).sameLists(t, noList)
		items := read.list.(*v1.PodList).Items
		body = answers.Events(t, contentType, events...)
		received := newTwins(t, typed, contentType, bytes.NewReader(body)).sameWatches(t).events
		for _, pair := range [][2]*v1.Pod{
			{&items[0], &items[1]},
			{received[0].Object.(*v1.Pod), received[1].Object.(*v1.Pod)},
		} {
			a, b := pair[0], pair[1]
			require.Same(t, unsafe.StringData(a.Namespace), unsafe.StringData(b.Namespace))
			require.NotSame(t, &a.ManagedFields[0].FieldsV1.Raw[0],
				&b.ManagedFields[0].FieldsV1.Raw[0])
		}
	}
}

// given is a decoder that notes what it was given.
type given struct {
	runtime.Decoder
	data []byte
}

func (g *given) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	g.data = append(g.data, data...)
	return g.Decoder.Decode(data, defaults, into)
}

// The client's own decoder gets no items of a usual list, whatever it decodes into.
func TestNegotiator_ItemsAreCutOut(t *testing.T) {
	body := []byte(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`)
	for _, test := range []struct {
		s    runtime.NegotiatedSerializer
		into runtime.Object
	}{{dynamicOnly, &unstructured.UnstructuredList{}}, {typed, nil}, {typed, &v1.PodList{}}} {
		decoder, err := runtime.NewClientNegotiator(test.s, v1.SchemeGroupVersion).
			Decoder(runtime.ContentTypeJSON, nil)
		require.NoError(t, err)
		codec, ok := codecOf(reflect.ValueOf(decoder))
		require.True(t, ok)
		own := &given{Decoder: decoder}
		list := clientList{own, codec, decode.NewSharedStrings()}
		got, _, err := list.Decode(body, nil, test.into)
		require.NoError(t, err)
		require.Equal(t, 1, meta.LenList(got))
		require.NotContains(t, string(own.data), "name")
	}
}

// Decoding into a nil pointer is an error, as in the client's own decoder.
func TestNegotiator_IntoNil(t *testing.T) {
	body := `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`
	for _, into := range []runtime.Object{(*v1.PodList)(nil), noPointer{}} {
		plain := runtime.NewClientNegotiator(typed, v1.SchemeGroupVersion)
		own, err := plain.Decoder(runtime.ContentTypeJSON, nil)
		require.NoError(t, err)
		faster, err := Faster()(plain).Decoder(runtime.ContentTypeJSON, nil)
		require.NoError(t, err)
		_, _, want := own.Decode([]byte(body), nil, into)
		_, _, got := faster.Decode([]byte(body), nil, into)
		require.Error(t, want)
		require.Equal(t, want, got)
	}
}

// kept is a custom resource with a field that keeps the bytes it was decoded from.
type kept struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              answers.KeptBytes `json:"spec"`
	Any               map[string]any    `json:"any"`
}

type keptList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []kept `json:"items"`
}

func (k *kept) DeepCopyObject() runtime.Object     { return k }
func (k *keptList) DeepCopyObject() runtime.Object { return k }

// Types with decoders of their own, even with one that keeps its bytes, against the rules of
// encoding/json.
func TestNegotiator_OwnUnmarshalJSON(t *testing.T) {
	codecs := custom(&kept{}, &keptList{})
	list := `{"kind":"CustomList","apiVersion":"example.com/v1","items":[`
	events := ""
	const count = 20
	for i := range count {
		obj := fmt.Sprintf(`{"kind":"Custom","apiVersion":"example.com/v1",`+
			`"metadata":{"name":"a"},"spec":{"i":%d},"any":{"n":%d,"f":1.5}}`, i, i)
		list += obj + ","
		events += `{"type":"ADDED","object":` + obj + `}`
	}
	list = strings.TrimSuffix(list, ",") + "]}"
	read := newTwins(t, codecs, answers.JSON, strings.NewReader(list)).
		sameLists(t, func() runtime.Object { return &keptList{} })
	require.Len(t, read.list.(*keptList).Items, count)
	received := newTwins(t, codecs, answers.JSON, strings.NewReader(events)).sameWatches(t).events
	require.Len(t, received, count)
	require.JSONEq(t, `{"i":7}`, string(received[7].Object.(*kept).Spec))
}

// counted is an object with items that notes how often it was decoded.
type counted struct {
	metav1.TypeMeta
	count int
}

func (c *counted) UnmarshalJSON([]byte) error {
	c.count++
	return nil
}

func (c *counted) DeepCopyObject() runtime.Object { return c }

// An object that is no list after all is decoded as if it had not been tried.
func TestNegotiator_NoListAfterAll(t *testing.T) {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(v1.SchemeGroupVersion.WithKind("Counted"), &counted{})
	custom := serializer.NewCodecFactory(s).WithoutConversion()
	body := `{"kind":"Counted","apiVersion":"v1","items":[{}]}`
	o := newTwins(t, custom, answers.JSON, strings.NewReader(body)).
		sameLists(t, func() runtime.Object { return &counted{} })
	require.Equal(t, &counted{count: 1}, o.list)
}

// Odd events and lists, before and after usual ones.
func TestNegotiator_OddAnswers(t *testing.T) {
	for _, odd := range oddEvents {
		body := usualEvent + usualEvent + odd + usualEvent + usualEvent
		for _, s := range []runtime.NegotiatedSerializer{typed, dynamicOnly} {
			newTwins(t, s, answers.JSON, strings.NewReader(body)).sameWatches(t, odd)
		}
	}
	for _, odd := range oddLists {
		for _, newList := range newLists {
			for _, s := range []runtime.NegotiatedSerializer{typed, metadataOnly, dynamicOnly} {
				newTwins(t, s, answers.JSON, strings.NewReader(odd)).sameLists(t, newList, odd)
			}
		}
	}
}

// Protobuf with repeated or unknown fields.
func TestNegotiator_OddProtobuf(t *testing.T) {
	pod := answers.Marshal(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	field := func(number byte, values ...[]byte) (message []byte) {
		for _, value := range values {
			message = append(append(message, number<<3|2, byte(len(value))), value...)
		}
		return message
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	kind := join(field(1, []byte("v1")), field(2, []byte("Pod")))
	listKind := join(field(1, []byte("v1")), field(2, []byte("PodList")))
	for _, envelope := range [][]byte{
		nil, field(1, kind), field(2, pod), join(field(1, kind), field(2, pod)),
		join(field(2, pod), field(1, kind)), join(field(1, kind), field(2, pod, pod)),
		join(field(1, kind, field(2, []byte("Node"))), field(2, pod)),
		join(field(1, kind), field(2, pod), field(3, []byte("x")), field(4, []byte("x"))),
		join(field(1, kind), field(2, pod), field(7, []byte("x"))),
		join(field(1, kind), field(2, pod), []byte{7 << 3, 1}),
		join(field(1, kind), []byte{2 << 3, 0}), join(field(1, kind), []byte{2<<3 | 2, 99}),
		join(field(1, join(kind, kind)), field(2, pod)),
		join(field(1, []byte("no kind"), kind), field(2, pod)),
	} {
		object := append([]byte(decode.Magic), envelope...)
		event := join(field(1, []byte("ADDED")), field(2, field(1, object)))
		for _, message := range [][]byte{
			event, append(event, event...), append(event, field(9, pod)...), event[:len(event)/2],
			join(field(2, []byte("no object")), event),
		} {
			body := append([]byte{0, 0, 0, byte(len(message))}, message...)
			newTwins(t, typed, answers.Protobuf, bytes.NewReader(body)).
				sameWatches(t, "%q", message)
		}
	}
	for _, list := range [][]byte{
		field(2, pod, pod), join(field(2, pod), field(1, field(2, []byte("5"))), field(2, pod)),
		join(field(2, pod), field(9, pod)), join(field(2, pod), []byte{2 << 3, 1}),
		join([]byte{2 << 3, 1}, field(2, pod)),
		field(2, pod, pod[:len(pod)-1]), field(2, nil, nil), field(1, field(2, []byte("5"))),
	} {
		for _, envelope := range [][]byte{
			join(field(1, listKind), field(2, list)), join(field(2, list), field(1, listKind)),
			join(field(1, listKind), field(2, list, list)), field(2, list),
			join(field(1, listKind), field(2, list), field(9, pod)),
			join(field(1, kind), field(2, list)), join(field(1, listKind), field(2, list)[:4]),
		} {
			for _, body := range [][]byte{append([]byte(decode.Magic), envelope...), envelope} {
				for _, newList := range newLists {
					newTwins(t, typed, answers.Protobuf, bytes.NewReader(body)).
						sameLists(t, newList, "%q", body)
				}
			}
		}
	}
}

// The client's own decoders read a long event, or refuse it.
func TestNegotiator_LongEvents(t *testing.T) {
	long := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 17<<20)}}
	body := answers.Events(t, answers.Protobuf, append(answers.Samples()[:1],
		watch.Event{Type: watch.Added, Object: long}, answers.Samples()[1])...)
	got := newTwins(t, typed, answers.Protobuf, bytes.NewReader(body)).sameWatches(t)
	require.Len(t, got.events, 2)
	require.Equal(t, watch.Error, got.events[1].Type)

	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		body := bytes.NewReader(answers.Events(t, contentType, answers.Samples()...))
		clients := newTwins(t, typed, contentType, body)
		n := Faster()(runtime.NewClientNegotiator(typed, v1.SchemeGroupVersion)).(faster)
		n.maxEvent = 50_000
		clients.faster = answers.ClientOf(t, n, clients.answer)
		require.Len(t, clients.sameWatches(t).events, len(answers.Samples()))
	}
}

// framesOf returns the number of frames of a watch, what the client's own framer had to read of it,
// and its end.
func framesOf(
	t *testing.T, contentType string, body []byte, end error, maxEvent int,
) (count int, own []byte, got error) {
	parts := watchPartsOf(t, typed, contentType)
	client := &notes{Framer: parts.framer}
	parts.framer = client
	w := parts.watch(maxEvent)
	stream := io.MultiReader(bytes.NewReader(body), iotest.ErrReader(end))
	in := eventFramer{client.Framer, w}.NewFrameReader(io.NopCloser(stream))
	for frame := make([]byte, 4<<10); ; count++ {
		if _, got = in.Read(frame); got != nil {
			return count, client.read.Bytes(), got
		}
	}
}

// notes is a framer that notes what it reads.
type notes struct {
	runtime.Framer
	read bytes.Buffer
}

func (n *notes) NewFrameReader(body io.ReadCloser) io.ReadCloser {
	return n.Framer.NewFrameReader(struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, &n.read), body})
}

// The frames of a watch end as the client's own frames do, wherever it is cut off. The client's
// error may have an offset, which counts from the frame that was handed over.
func TestNegotiator_EndsOfFrames(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		body := answers.Events(t, contentType, answers.Samples()[:2]...)
		for at := range len(body) + 1 {
			for _, end := range []error{io.EOF, io.ErrClosedPipe} {
				count, _, got := framesOf(t, contentType, body[:at], end, 1<<20)
				wantCount, own, want := framesOf(t, contentType, body[:at], end, 0)
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "%s cut at %d", contentType, at)
				require.Equal(t, wantCount, count, "%s cut at %d", contentType, at)
				if wantCount > 0 {
					require.Equal(t, body[:at], own, "all is the client's")
				}
			}
		}
	}
}

// An event of maxEvent bytes is cut, and a longer one is the client's. In JSON, the line before an
// event counts.
func TestNegotiator_LongestEvent(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		event := answers.Events(t, contentType, answers.Samples()[0])
		length := len(event) - 4
		if contentType == answers.JSON {
			length = len(event) - len("\n")
		}
		for maxEvent, isOwn := range map[int]bool{length: false, length - 1: true} {
			count, own, _ := framesOf(t, contentType, event, io.EOF, maxEvent)
			require.Equal(t, 1, count)
			require.Equal(t, isOwn, bytes.Contains(own, event), "%s, %d", contentType, maxEvent)
		}
	}
	endless := strings.NewReader(usualEvent[:20] + strings.Repeat(" ", 1<<20))
	noted := &recorder{in: endless, max: 1000}
	w := newClientWatch(codec{}, jsonserializer.Framer, nil, nil, faster{maxEvent: noted.max})
	require.NoError(t, w.cutJSON(jsontext.NewDecoder(noted), noted))
	require.NotNil(t, w.own)
	require.Less(t, len(noted.held), 64<<10, "the rest was not read")
}

// A server that sends many kinds does not make a watch remember all.
func TestNegotiator_ManyKinds(t *testing.T) {
	body := ""
	for i := range 3 * maxKinds {
		body += fmt.Sprintf(`{"type":"ADDED","object":{"kind":"K%d","apiVersion":"v1"}}`, i)
	}
	require.Len(t, newTwins(t, dynamicOnly, answers.JSON, strings.NewReader(body)).
		sameWatches(t).events, 3*maxKinds)
	client := runtime.NewClientNegotiator(dynamicOnly, v1.SchemeGroupVersion)
	decoder, serializer, framer, err := Faster()(client).
		StreamDecoder(runtime.ContentTypeJSON, nil)
	require.NoError(t, err)
	in := framer.NewFrameReader(io.NopCloser(strings.NewReader(body)))
	frame := make([]byte, 1024)
	for range 3 * maxKinds {
		n, err := in.Read(frame)
		require.NoError(t, err)
		var event metav1.WatchEvent
		_, _, err = serializer.Decode(frame[:n], nil, &event)
		require.NoError(t, err)
		_, err = runtime.Decode(decoder, event.Object.Raw)
		require.NoError(t, err)
		require.True(t, json.Valid(frame[:n]))
	}
	require.Len(t, decoder.(eventDecoder).watch.decoders, maxKinds)
}

// A receiver that is slower than the server does not hold the request, and Stop ends it.
func TestNegotiator_ReadsAhead(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		synctest.Test(t, func(t *testing.T) {
			const count = 400
			event := answers.Events(t, contentType, answers.Samples()[0])
			deadline := time.Now().Add(5 * time.Second)
			clients := newTwinsOf(t, typed, contentType, func() io.Reader {
				return answers.Until(deadline, bytes.NewReader(bytes.Repeat(event, count)))
			})
			w, err := clients.faster.Get().Resource("all").Watch(t.Context())
			require.NoError(t, err)
			got := 0
			for range w.ResultChan() {
				time.Sleep(time.Second)
				got++
			}
			require.Equal(t, count, got)
		})
	}
}

// Stop ends a watch without an ERROR event, even if something still receives.
func TestNegotiator_Stop(t *testing.T) {
	for range 30 {
		for _, contentType := range []string{answers.JSON, answers.Protobuf} {
			synctest.Test(t, func(t *testing.T) {
				event := answers.Events(t, contentType, answers.Samples()[0])
				clients := newTwinsOf(t, typed, contentType, func() io.Reader {
					return &answers.Endless{Data: event, Size: len(event)}
				})
				w, err := clients.faster.Get().Resource("all").Watch(t.Context())
				require.NoError(t, err)
				<-w.ResultChan()
				go func() {
					w.Stop()
					w.Stop()
				}()
				for e := range w.ResultChan() { // until it is stopped
					require.Equal(t, watch.Added, e.Type)
				}
				synctest.Wait() // the bubble ends only if every goroutine does
			})
		}
	}
}

// rewords makes readers of frames that return errors of their own, as that of JSON does in a
// program built with GOEXPERIMENT=jsonv2.
type rewords struct{ runtime.Framer }

func (f rewords) NewFrameReader(body io.ReadCloser) io.ReadCloser {
	return reworded{f.Framer.NewFrameReader(body)}
}

type reworded struct{ io.ReadCloser }

func (r reworded) Read(p []byte) (n int, err error) {
	if n, err = r.ReadCloser.Read(p); err != nil {
		err = errors.New(err.Error())
	}
	return n, err
}

// Stop ends a watch without an error, even if the client's own reader has another one.
func TestNegotiator_StopIsNoError(t *testing.T) {
	parts := watchPartsOf(t, typed, answers.JSON)
	framer := parts.framer
	parts.framer = rewords{framer}
	in := eventFramer{framer, parts.watch(maxEventBytes)}.
		NewFrameReader(io.NopCloser(strings.NewReader(usualEvent)))
	require.NoError(t, in.Close())
	_, err := in.Read(make([]byte, 1024))
	require.Equal(t, io.EOF, err)
}

// The usual objects are not left to the client's own decoder.
func TestNegotiator_UsualKinds(t *testing.T) {
	for _, s := range []runtime.NegotiatedSerializer{
		typed, dynamicOnly, withKinds{scheme.Codecs},
	} {
		w := watchPartsOf(t, s, answers.JSON).watch(maxEventBytes)
		require.NotNil(t, w.newDecoderOf(metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}))
	}
}

// A frame that was read is not held.
func TestRecorder(t *testing.T) {
	r := &recorder{in: &answers.Endless{Data: make([]byte, 100), Size: 100}, max: 1000}
	for range 100 {
		n, err := r.Read(make([]byte, 100))
		require.NoError(t, err)
		require.Len(t, r.since(), n)
		require.LessOrEqual(t, len(r.held), 200)
		r.from += int64(n)
	}
}

// The bound is that of one event. A watch of many events is not left to the client's own parts.
func TestNegotiator_ManyEvents(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		parts := watchPartsOf(t, typed, contentType)
		w := parts.watch(1000)
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		event := answers.Events(t, contentType, watch.Event{Type: watch.Added, Object: pod})
		body := bytes.NewReader(bytes.Repeat(event, 10_000/len(event)))
		in := eventFramer{parts.framer, w}.NewFrameReader(io.NopCloser(body))
		frame := make([]byte, 2000)
		for range 10_000 / len(event) {
			_, err := in.Read(frame)
			require.NoError(t, err)
			require.True(t, w.event.IsUsual)
		}
		var received metav1.WatchEvent
		_, _, err := eventSerializer{parts.events, w}.Decode(w.frame, nil, &received)
		require.NoError(t, err)
		into := &v1.Pod{}
		obj, _, err := eventDecoder{w}.Decode(received.Object.Raw, nil, into)
		require.NoError(t, err)
		require.Same(t, into, obj)
		require.Equal(t, "a", into.Name)
		require.Nil(t, w.own)
		_, err = in.Read(frame)
		require.Equal(t, io.EOF, err)
	}
}
