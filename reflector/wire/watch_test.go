// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/tools/answers"
)

// receiveClientGo returns what client-go's typed client reads from body.
func receiveClientGo(t testing.TB, contentType string, body io.Reader) []watch.Event {
	client := answers.Client(t, &answers.Server{
		ContentType: contentType,
		Answer:      func(*http.Request) (int, io.Reader) { return http.StatusOK, body },
	})
	w, err := client.Get().Resource("pods").Watch(t.Context())
	require.NoError(t, err)
	return answers.Receive(w)
}

// A watch has the events that client-go's client reads, in both formats, however they arrive.
func TestReadWatch_AsClientGo(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		body := answers.Events(t, contentType, answers.Samples()...)
		want := receiveClientGo(t, contentType, bytes.NewReader(body))
		require.Len(t, want, len(answers.Samples()))
		for name, in := range inEveryWay(body) {
			t.Run(contentType+"/"+name, func(t *testing.T) {
				require.Equal(t, want, receive(in, newPod, Options{}))
			})
		}
	}
}

// A stream that is cut anywhere has the events before the cut, and ends without an error.
func TestReadWatch_CutAnywhere(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		events := answers.Samples()
		events = append(events[:4], events[5]) // without the long one
		body := answers.Events(t, contentType, events...)
		for end := range body {
			want := receiveClientGo(t, contentType, bytes.NewReader(body[:end]))
			got := receive(bytes.NewReader(body[:end]), newPod, Options{})
			require.Equal(t, want, got, "%s cut at %d", contentType, end)
		}
	}
}

func TestReadWatch_Unstructured(t *testing.T) {
	body := answers.Events(t, answers.JSON, answers.Samples()...)
	got := receive(bytes.NewReader(body), newUnstructured, Options{})
	require.Len(t, got, len(answers.Samples()))
	for i, e := range answers.Samples()[:5] {
		require.Equal(t, e.Type, got[i].Type)
		u := got[i].Object.(*unstructured.Unstructured)
		require.Equal(t, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, u.GroupVersionKind())
		require.Equal(t, e.Object.(*v1.Pod).ResourceVersion, u.GetResourceVersion())
	}
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(got[5].Object)))
}

// An event that cannot be read ends the watch, after the events before it, with an ERROR event.
func TestReadWatch_Bad(t *testing.T) {
	const good = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}`
	for name, test := range map[string]struct{ stream, want string }{
		"no JSON":       {`<html>`, "not JSON: expected '{', got"},
		"no type":       {`{}`, "event has the type"},
		"unknown type":  {`{"type":"CHANGED"}`, "event has the type"},
		"type is a 1":   {`{"type":1}`, "expected a string, got '0'"},
		"no object":     {`{"type":"ADDED"}`, "decode *v1.Pod: unexpected end of JSON input"},
		"null":          {`{"type":"ADDED","object":null}`, "no apiVersion or no kind"},
		"no kind":       {`{"type":"ADDED","object":{}}`, "no apiVersion or no kind"},
		"a wrong field": {strings.Replace(good, `"v1"`, `1`, 1), "cannot unmarshal number"},
		"deep": {
			`{"type":"ADDED","object":` + strings.Repeat("[", 20_000), "exceeded max depth",
		},
		"too long": {
			`{"type":"ADDED","object":{"a":"` + strings.Repeat("a", 1<<20), "Limits.ObjectBytes",
		},
		"protobuf, too long":        {"\x00\x20\x00\x00", "an object of 2097152 bytes"},
		"protobuf, no event":        {"\x00\x00\x00\x01\x08", "not protobuf: unexpected EOF"},
		"protobuf, no type":         {"\x00\x00\x00\x00", "event has the type"},
		"protobuf, no object":       {"\x00\x00\x00\x07\x0a\x05ADDED", "without its envelope"},
		"protobuf, another message": {"k8s\x00", "bytes, see Limits.ObjectBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			before := []byte(good)
			if test.stream[0] < ' ' {
				before = answers.Events(t, answers.Protobuf, answers.Samples()[0])
			}
			if test.stream[0] == 'k' {
				before = nil
			}
			body := io.MultiReader(bytes.NewReader(before), strings.NewReader(test.stream))
			got := receive(body, newPod, Options{Limits: Limits{ObjectBytes: 1 << 20}})
			last := len(got) - 1
			require.Equal(t, min(len(before), 1), last)
			require.Equal(t, watch.Error, got[last].Type)
			err := apierrors.FromObject(got[last].Object)
			require.True(t, apierrors.HasStatusCause(err, "ClientWatchDecoding"))
			require.ErrorContains(t, err, fmt.Sprintf("read watch after %d events: ", last))
			require.ErrorContains(t, err, test.want)
		})
	}
}

// An object of another kind is not forced into the expected type.
func TestReadWatch_OtherKinds(t *testing.T) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		body := answers.Events(t, contentType, watch.Event{Type: watch.Added, Object: node},
			answers.Samples()[0])
		got := receive(bytes.NewReader(body), newPod, Options{})
		require.Len(t, got, 2)
		require.Equal(t, "Node", got[0].Object.GetObjectKind().GroupVersionKind().Kind)
		require.IsType(t, &unstructured.Unstructured{}, got[0].Object)
		require.IsType(t, &v1.Pod{}, got[1].Object)
	}
	// A Status is never an object of a collection, not even of one of any kind.
	for _, newObject := range []NewObject{newPod, newMetadata, newUnstructured} {
		body := `{"type":"ADDED","object":{"kind":"Status","apiVersion":"v1","code":404}}`
		got := receive(strings.NewReader(body), newObject, Options{})
		require.Equal(t, []watch.Event{{Type: watch.Added, Object: &metav1.Status{Code: 404}}}, got)
	}
}

// An event is delivered before the next one arrives, and Stop ends every goroutine, whatever they
// wait for.
func TestReadWatch_DoesNotWait(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		synctest.Test(t, func(t *testing.T) {
			reader, writer := io.Pipe()
			w := ReadWatch(reader, newPod, Options{})
			body := answers.Events(t, contentType, answers.Samples()[0])
			go func() {
				for range 3 {
					time.Sleep(time.Minute)
					_, _ = writer.Write(body)
				}
			}()
			for range 2 {
				begin := time.Now()
				<-w.ResultChan()
				require.Equal(t, time.Minute, time.Since(begin))
			}
			time.Sleep(2 * time.Minute) // the third event waits for a receiver
			w.Stop()
			w.Stop()
			synctest.Wait()
			_, open := <-w.ResultChan()
			require.False(t, open)
		})
	}
}

// An event is delivered even if the bytes behind it are the first half of another event.
func TestReadWatch_DoesNotWaitForTheRest(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		event := answers.Events(t, contentType, answers.Samples()[0])
		for _, half := range []int{1, len(event) / 2, len(event) - 2} { // the last is a newline
			synctest.Test(t, func(t *testing.T) {
				reader, writer := io.Pipe()
				w := ReadWatch(reader, newPod, Options{})
				defer w.Stop()
				begin := time.Now()
				go func() {
					_, _ = writer.Write(slices.Concat(event, event, event[:half]))
					time.Sleep(time.Minute)
					_, _ = writer.Write(event[half:])
				}()
				for _, want := range []time.Duration{0, 0, time.Minute} {
					<-w.ResultChan()
					require.Equal(t, want, time.Since(begin))
				}
			})
		}
	}
}

// Whatever a server sends, the events are those that client-go's client reads.
func FuzzReadWatch(f *testing.F) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		body := answers.Events(f, contentType, answers.Samples()[:4]...)
		f.Add(body, 7)
		f.Add(body[:len(body)-9], 100)
		f.Add(append(body, "\n\n x"...), 1)
	}
	f.Add([]byte(`{"type":"ADDED","type":"DELETED","object":1,"object":{"kind":"Pod"}} null`), 3)
	const pod = `"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}`
	for _, repeated := range []string{
		`"type":"X",` + pod, `"type":null,"object":00,` + pod, pod + `,"type":null,"object":null`,
	} {
		f.Add([]byte("{"+repeated+"}"), 5)
	}
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		contentType := answers.JSON
		if len(body) > 0 && body[0] < '\t' {
			contentType = answers.Protobuf
		}
		want := receiveClientGo(t, contentType, bytes.NewReader(body))
		in := &chunked{data: body, size: 1 + max(size, -size)%64}
		got := receive(in, newPod, Options{})
		for i, e := range got {
			pod, isPod := e.Object.(*v1.Pod)
			switch {
			case e.Type == watch.Error && i < len(want) && want[i].Type != watch.Error:
				t.Fatalf("client-go reads on: %v", e.Object)
			case !isPod:
				return // client-go's outcome depends on the kinds that are registered
			}
			require.Greater(t, len(want), i)
			if s, isStatus := want[i].Object.(*metav1.Status); isStatus {
				require.Contains(t, s.Message, "no kind") // registered for this apiVersion
				return
			}
			require.Equal(t, want[i], watch.Event{Type: e.Type, Object: pod})
		}
		if len(want) > len(got) { // client-go finds a syntax error also in an event that is cut off
			require.Equal(t, watch.Error, want[len(got)].Type)
		}
	})
}

// A watch is quiet if it waits for the beginning of an event, and not within one, or while its
// receiver is slow.
func TestReadWatch_Quiet(t *testing.T) {
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		synctest.Test(t, func(t *testing.T) {
			body, server := io.Pipe()
			w := ReadWatch(body, newPod, Options{})
			defer w.Stop()
			quiet := w.(interface{ Quiet() (time.Time, int, bool) }).Quiet
			isQuiet := func() bool {
				synctest.Wait()
				_, _, ok := quiet()
				return ok
			}
			frame := answers.Events(t, contentType, watch.Event{
				Type: watch.Added, Object: &v1.Pod{ObjectMeta: metav1.ObjectMeta{
					Name: strings.Repeat("a", 99),
				}},
			})
			require.False(t, isQuiet(), "the first event is unknown")
			_, _ = server.Write(frame)
			<-w.ResultChan()
			require.True(t, isQuiet())
			began := time.Now()
			time.Sleep(time.Second)
			arrived, largest, _ := quiet()
			require.Equal(t, began, arrived)
			require.InDelta(t, len(frame), largest, 5)

			_, _ = server.Write(frame[:len(frame)/2])
			require.False(t, isQuiet(), "within an event")
			_, _ = server.Write(frame[len(frame)/2:])
			for range eventBuffer {
				_, _ = server.Write(frame)
			}
			require.False(t, isQuiet(), "an event waits for the buffer")
			<-w.ResultChan()
			require.True(t, isQuiet(), "the others are in the buffer")

			for range eventBuffer {
				<-w.ResultChan()
			}
			smaller := answers.Events(t, contentType, watch.Event{
				Type: watch.Added, Object: &v1.Pod{},
			})
			_, _ = server.Write(smaller)
			require.True(t, isQuiet())
			_, largest, _ = quiet()
			require.Less(t, len(smaller), len(frame)-5)
			require.InDelta(t, len(frame), largest, 5)
			_ = server.Close()
			require.False(t, isQuiet(), "it has ended")
		})
	}
}

// Events have the order of the server, however many of them wait for their receiver: in the buffer,
// and as bytes behind it.
func TestReadWatch_KeepsTheOrderBeyondTheBuffer(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		for _, n := range []int{eventBuffer - 1, eventBuffer, eventBuffer + 1, 3*eventBuffer + 1} {
			synctest.Test(t, func(t *testing.T) {
				var events []watch.Event
				for i := range n {
					kind := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}[i%3]
					events = append(events, watch.Event{Type: kind, Object: &v1.Pod{
						ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i)}}})
				}
				w := ReadWatch(io.NopCloser(bytes.NewReader(
					answers.Events(t, contentType, events...))), newPod, Options{})
				for i := range n {
					synctest.Wait() // the buffer is full, or has all that is left
					require.Len(t, w.ResultChan(), min(n-i, eventBuffer))
					got := <-w.ResultChan()
					require.Equal(t, events[i].Type, got.Type)
					require.Equal(t, fmt.Sprint("pod-", i), got.Object.(*v1.Pod).Name)
				}
				_, open := <-w.ResultChan()
				require.False(t, open)
			})
		}
	}
}
