// SPDX-License-Identifier: Apache-2.0

package firstsync

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// serve serves the pods, prints the URL, and returns when stdin is closed.
func serve(podCount int) {
	server := httptest.NewServer(podServer(podCount))
	defer server.Close()
	fmt.Println(server.URL)
	untilStdinEnds()
	server.CloseClientConnections()
}

// podServer answers LIST and WATCH of that many pods, in JSON or protobuf. It makes each pod while
// it writes: pod i is the encoded template with other digits, see numbered.
type podServer int

func (n podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	accept := r.Header.Get("Accept")
	encoding := jsonEncoding
	if strings.HasPrefix(accept, runtime.ContentTypeProtobuf) {
		encoding = protobufEncoding
	}
	isWatch := query.Get("watch") != ""
	contentType := encoding.contentType
	if isWatch {
		contentType += encoding.watchParameter
	}
	w.Header().Set("Content-Type", contentType)
	out := bufio.NewWriterSize(w, 64<<10)
	switch {
	case !isWatch:
		encoding.writeList(out, int(n))
	case query.Get("sendInitialEvents") == "true":
		writePods(out, encoding.event("ADDED", podTemplate(true)), int(n), "")
		end := podTemplate(true)
		end.Annotations[metav1.InitialEventsAnnotationKey] = "true"
		_, _ = out.Write(encoding.event("BOOKMARK", end))
	}
	_ = out.Flush()
	if isWatch {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// encoding is how a server sends objects.
type encoding struct {
	contentType, watchParameter string
	event                       func(eventType string, obj runtime.Object) []byte
	writeList                   func(w io.Writer, n int)
}

var jsonEncoding = encoding{
	contentType: runtime.ContentTypeJSON,
	event: func(eventType string, obj runtime.Object) []byte {
		return append(marshal(&metav1.WatchEvent{
			Type: eventType, Object: runtime.RawExtension{Raw: marshal(obj)},
		}), '\n')
	},
	writeList: func(w io.Writer, n int) {
		_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1",`+
			`"metadata":{"resourceVersion":"%d"},"items":[`, listVersion)
		writePods(w, marshal(podTemplate(false)), n, ",")
		_, _ = io.WriteString(w, "]}\n")
	},
}

func marshal(obj any) []byte {
	text, err := json.Marshal(obj)
	must(err)
	return text
}

var protobufEncoding = encoding{
	contentType:    runtime.ContentTypeProtobuf,
	watchParameter: ";stream=watch",
	event: func(eventType string, obj runtime.Object) []byte {
		pod := obj.(protobufObject)
		raw := append(unknown("Pod", uint64(pod.Size())), marshalProtobuf(pod)...)
		frame := marshalProtobuf(&metav1.WatchEvent{
			Type: eventType, Object: runtime.RawExtension{Raw: raw},
		})
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	},
	writeList: func(w io.Writer, n int) {
		meta := &metav1.ListMeta{ResourceVersion: fmt.Sprint(listVersion)}
		header := field(1, uint64(meta.Size()))
		header = append(header, marshalProtobuf(meta)...)
		pod := podTemplate(false)
		item := append(field(2, uint64(pod.Size())), marshalProtobuf(pod)...)
		_, _ = w.Write(unknown("PodList", uint64(len(header)+n*len(item))))
		_, _ = w.Write(header)
		writePods(w, item, n, "")
	},
}

type protobufObject interface {
	Size() int
	Marshal() ([]byte, error)
}

func marshalProtobuf(obj protobufObject) []byte {
	data, err := obj.Marshal()
	must(err)
	return data
}

// unknown is the beginning of a runtime.Unknown, which ends with size bytes of an encoded object.
func unknown(kind string, size uint64) []byte {
	envelope := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}}
	data := append([]byte("k8s\x00"), marshalProtobuf(envelope)...)
	return append(data, field(2, size)...)
}

// field is the tag and the length of a field of size bytes.
func field(number byte, size uint64) []byte {
	return binary.AppendUvarint([]byte{number<<3 | 2}, size)
}

// writePods writes the pods, each made from the encoded template.
func writePods(w io.Writer, template []byte, n int, separator string) {
	for i := range n {
		if i > 0 {
			_, _ = io.WriteString(w, separator)
		}
		_, _ = w.Write(numbered(template, i))
	}
}
