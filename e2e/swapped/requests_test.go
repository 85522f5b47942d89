// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

var requestSeeds = flag.String("seeds", "20", "how many reflectors run with each client")

// The answers of a server that fails in the middle of bodies: reflectors with clients of many kinds
// send the same requests, and get the same objects and errors, as with client-go's decoders.
func TestSwapped_ClientGo_FaultyAnswers(t *testing.T) {
	swapped := compile(t, "clientgo", swap(t, "clientgo"), "./requests")
	for _, stream := range []string{"true", "false"} {
		t.Run("WatchListClient="+stream, func(t *testing.T) {
			t.Parallel()
			way := "KUBE_FEATURE_WatchListClient=" + stream
			want := requestsOf(t, swapped, way, "INFORMERSTACK_DECODER=client-go")
			assert.Contains(t, want, "unexpected EOF")
			same(t, want, requestsOf(t, swapped, way))
		})
	}
}

// requestsOf returns what the program prints of its requests.
func requestsOf(t *testing.T, program string, env ...string) string {
	t.Helper()
	server := httptest.NewUnstartedServer(&faultyServer{folders: map[string]*faultyFolder{}})
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), program, "-url", server.URL, "-seeds", *requestSeeds)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out[max(0, len(out)-4<<10):])
	return ofOneRun.ReplaceAllString(strings.ReplaceAll(string(out), server.URL, ""), "")
}

// ofOneRun is what errors say that differs from run to run.
var ofOneRun = regexp.MustCompile(` stream ID \d+;`)

// same requires equal texts, and shows the first lines that differ.
func same(t *testing.T, want, got string) {
	t.Helper()
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wants), len(gots)) {
		if wants[i] != gots[i] {
			require.Fail(t, "they differ", "after\n%s\nwant\n%s\ngot\n%s",
				strings.Join(wants[max(0, i-8):i], "\n"), wants[i], gots[i])
		}
	}
	require.Equal(t, len(wants), len(gots), "lines")
}

// faultyServer answers the requests of reflectors. Each has a folder of objects, with which its
// paths begin; two objects change with each watch. The first answers have faults. All answers
// depend on the folder and on the number of the request alone.
type faultyServer struct {
	mu      sync.Mutex
	folders map[string]*faultyFolder
}

// faultsOfFolder is how many answers of a folder have a fault.
const faultsOfFolder = 8

// objectsOfFolder is how many ConfigMaps a folder has at first.
const objectsOfFolder = 20

// faultyFolder has ConfigMaps with numbers for names, and at last one that is called last.
type faultyFolder struct {
	random  *rand.Rand
	answers int
	rv      int
	objects map[string]*corev1.ConfigMap
	log     []metav1.WatchEvent // number rv-1 is the change to rv
}

func newFaultyFolder(name string) *faultyFolder {
	seed := fnv.New64()
	_, _ = io.WriteString(seed, name)
	f := &faultyFolder{
		random:  rand.New(rand.NewSource(int64(seed.Sum64()))),
		objects: map[string]*corev1.ConfigMap{},
	}
	for i := range objectsOfFolder {
		f.write(strconv.Itoa(i))
	}
	return f
}

// write creates an object, changes it or, now and then, deletes it.
func (f *faultyFolder) write(name string) {
	old := f.objects[name]
	f.rv++
	obj := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, ResourceVersion: strconv.Itoa(f.rv),
			Labels: map[string]string{"app": "faulty"},
		},
		Data: map[string]string{"text": strings.Repeat("<é\n>", f.random.Intn(60))},
	}
	event := metav1.WatchEvent{
		Type: string(watch.Modified), Object: runtime.RawExtension{Object: obj},
	}
	f.objects[name] = obj
	switch {
	case old == nil:
		event.Type = string(watch.Added)
	case f.random.Intn(5) == 0:
		event.Type = string(watch.Deleted)
		delete(f.objects, name)
	}
	f.log = append(f.log, event)
}

// ServeHTTP implements http.Handler.
func (s *faultyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(r.URL.Path, "/api/")
	s.mu.Lock()
	f := s.folders[name]
	if f == nil {
		f = newFaultyFolder(name)
		s.folders[name] = f
	}
	s.mu.Unlock()
	f.serve(w, r)
}

// serve answers a request. A reflector has one at a time.
func (f *faultyFolder) serve(w http.ResponseWriter, r *http.Request) {
	f.answers++
	isFaulty := f.answers <= faultsOfFolder
	isWatch := r.FormValue("watch") != ""
	e := encoderFor(r.Header.Get("Accept"))
	since, err := strconv.Atoi("0" + r.FormValue("resourceVersion"))
	if err != nil || since > f.rv { // it is from an answer with a fault
		serveExpired(w)
		return
	}
	if isWatch {
		f.write(strconv.Itoa(f.random.Intn(objectsOfFolder)))
		f.write(strconv.Itoa(f.random.Intn(objectsOfFolder)))
		if !isFaulty && f.objects["last"] == nil {
			f.write("last")
		}
	}
	var body []byte
	switch {
	case !isWatch:
		body = e.list(f)
	case r.FormValue("sendInitialEvents") == "true":
		body = e.initialEvents(f)
	default:
		body = e.events(f.log[since:]...)
	}
	w.Header().Set("Content-Type", e.contentType(isWatch))
	if isFaulty {
		f.serveFault(w, body)
		return
	}
	_, _ = w.Write(body)
	if isWatch {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func serveExpired(w http.ResponseWriter) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(http.StatusGone)
	_ = json.NewEncoder(w).Encode(&metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusGone,
		Reason: metav1.StatusReasonExpired, Message: "this version is not of here",
	})
}

// serveFault answers with a body that has a fault.
func (f *faultyFolder) serveFault(w http.ResponseWriter, body []byte) {
	at := f.random.Intn(len(body))
	switch f.random.Intn(10) {
	case 0: // it ends too early
		_, _ = w.Write(body[:at])
	case 1, 2: // the connection breaks
		_, _ = w.Write(body[:at])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case 3: // it ends too early, compressed
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, _ = z.Write(body)
		_ = z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(small.Bytes()[:f.random.Intn(small.Len())])
	case 4: // another byte
		body[at] = "\xff\x00{}\"[],:9"[f.random.Intn(10)]
		_, _ = w.Write(body)
	case 5: // a part is there twice
		_, _ = w.Write(body[:at])
		_, _ = w.Write(body[at-f.random.Intn(at+1):])
	case 6: // a part is not there
		_, _ = w.Write(body[:at])
		_, _ = w.Write(body[at+f.random.Intn(len(body)-at):])
	case 7: // another type
		w.Header().Set("Content-Type", []string{
			"text/html", runtime.ContentTypeJSON, runtime.ContentTypeProtobuf,
		}[f.random.Intn(3)])
		_, _ = w.Write(body)
	case 8: // another answer
		status := []int{
			http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusNotFound,
		}[f.random.Intn(3)]
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "0")
		}
		w.WriteHeader(status)
		_, _ = w.Write(body[:at])
	default: // a warning
		w.Header().Add("Warning", `299 - "old"`)
		_, _ = w.Write(body)
	}
}

// encoder encodes as kube-apiserver does.
type encoder struct {
	media      string
	isMetadata bool
}

// encoderFor returns the encoder for what a client accepts first.
func encoderFor(accept string) encoder {
	first, _, _ := strings.Cut(accept, ",")
	media, params, _ := strings.Cut(first, ";")
	return encoder{media, strings.Contains(params, "as=PartialObjectMetadata")}
}

func (e encoder) contentType(isWatch bool) string {
	if isWatch {
		return e.media + ";stream=watch"
	}
	return e.media
}

func (e encoder) info() runtime.SerializerInfo {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), e.media)
	if !ok {
		panic(fmt.Sprintf("no encoder of %s", e.media))
	}
	return info
}

func (e encoder) encode(obj runtime.Object) []byte {
	text, err := runtime.Encode(e.info().Serializer, obj)
	if err != nil {
		panic(err) // it is one of ours
	}
	return text
}

func (e encoder) object(obj *corev1.ConfigMap) runtime.Object {
	if e.isMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{
				APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata",
			},
			ObjectMeta: obj.ObjectMeta,
		}
	}
	return obj
}

func (e encoder) list(f *faultyFolder) []byte {
	about := metav1.ListMeta{ResourceVersion: strconv.Itoa(f.rv)}
	if e.isMetadata {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{
			APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList",
		}, ListMeta: about}
		for _, obj := range f.sorted() {
			list.Items = append(list.Items, *e.object(obj).(*metav1.PartialObjectMetadata))
		}
		return e.encode(list)
	}
	list := &corev1.ConfigMapList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: about,
	}
	for _, obj := range f.sorted() {
		item := *obj
		item.TypeMeta = metav1.TypeMeta{}
		list.Items = append(list.Items, item)
	}
	return e.encode(list)
}

// sorted returns the objects in the order of their names.
func (f *faultyFolder) sorted() (all []*corev1.ConfigMap) {
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		all = append(all, f.objects[name])
	}
	return all
}

func (e encoder) events(events ...metav1.WatchEvent) []byte {
	var body bytes.Buffer
	stream := e.info().StreamSerializer
	w := stream.Framer.NewFrameWriter(&body)
	for _, event := range events {
		obj := e.object(event.Object.Object.(*corev1.ConfigMap))
		event.Object = runtime.RawExtension{Raw: e.encode(obj)}
		if err := stream.Serializer.Encode(&event, w); err != nil {
			panic(err) // it is one of ours
		}
	}
	return body.Bytes()
}

// initialEvents is the state, and the bookmark that ends it.
func (e encoder) initialEvents(f *faultyFolder) []byte {
	var events []metav1.WatchEvent
	for _, obj := range f.sorted() {
		events = append(events, metav1.WatchEvent{
			Type: string(watch.Added), Object: runtime.RawExtension{Object: obj},
		})
	}
	bookmark := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(f.rv),
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}
	return e.events(append(events, metav1.WatchEvent{
		Type: string(watch.Bookmark), Object: runtime.RawExtension{Object: bookmark},
	})...)
}
