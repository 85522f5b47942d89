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
	server := httptest.NewUnstartedServer(podServer(podCount))
	if server.EnableHTTP2 = *http2; *http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	defer server.Close()
	fmt.Println(server.URL)
	untilStdinEnds()
	server.CloseClientConnections()
}

// podServer answers LIST and WATCH of that many pods, or of their metadata, in JSON or protobuf. It
// makes each object while it writes: object i is the encoded template with other digits, see
// numbering.
type podServer int

func (n podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	accept := r.Header.Get("Accept")
	encoding := jsonEncoding
	if strings.HasPrefix(accept, runtime.ContentTypeProtobuf) {
		encoding = protobufEncoding
	}
	content := pods
	if strings.Contains(accept, "as=PartialObjectMetadata") {
		content = podMetadata
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
		encoding.writeList(out, content, int(n))
	case query.Get("sendInitialEvents") == "true":
		writeAll(out, encoding.event("ADDED", content.of(true)), int(n), "")
		end := content.of(true)
		end.(metav1.Object).GetAnnotations()[metav1.InitialEventsAnnotationKey] = "true"
		_, _ = out.Write(encoding.event("BOOKMARK", end))
	}
	_ = out.Flush()
	if isWatch {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// collection is what a server lists.
type collection struct {
	apiVersion, kind string
	of               func(withKind bool) template
}

var (
	pods = collection{"v1", "Pod", func(withKind bool) template {
		return podTemplate(withKind)
	}}
	podMetadata = collection{"meta.k8s.io/v1", "PartialObjectMetadata", func(k bool) template {
		return metadataTemplate(k)
	}}
)

// encoding is how a server sends objects.
type encoding struct {
	contentType, watchParameter string
	event                       func(eventType string, obj template) []byte
	writeList                   func(w io.Writer, of collection, n int)
}

var jsonEncoding = encoding{
	contentType: runtime.ContentTypeJSON,
	event: func(eventType string, obj template) []byte {
		return append(marshal(&metav1.WatchEvent{
			Type: eventType, Object: runtime.RawExtension{Raw: marshal(obj)},
		}), '\n')
	},
	writeList: func(w io.Writer, of collection, n int) {
		_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"%s",`+
			`"metadata":{"resourceVersion":"%d"},"items":[`, of.kind, of.apiVersion, listVersion)
		writeAll(w, marshal(of.of(false)), n, ",")
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
	event: func(eventType string, obj template) []byte {
		version, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		raw := append(unknown(version, kind, uint64(obj.Size())), marshalProtobuf(obj)...)
		frame := marshalProtobuf(&metav1.WatchEvent{
			Type: eventType, Object: runtime.RawExtension{Raw: raw},
		})
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	},
	writeList: func(w io.Writer, of collection, n int) {
		meta := &metav1.ListMeta{ResourceVersion: fmt.Sprint(listVersion)}
		header := field(1, uint64(meta.Size()))
		header = append(header, marshalProtobuf(meta)...)
		obj := of.of(false)
		item := append(field(2, uint64(obj.Size())), marshalProtobuf(obj)...)
		_, _ = w.Write(unknown(of.apiVersion, of.kind+"List", uint64(len(header)+n*len(item))))
		_, _ = w.Write(header)
		writeAll(w, item, n, "")
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
func unknown(apiVersion, kind string, size uint64) []byte {
	envelope := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}}
	data := append([]byte("k8s\x00"), marshalProtobuf(envelope)...)
	return append(data, field(2, size)...)
}

// field is the tag and the length of a field of size bytes.
func field(number byte, size uint64) []byte {
	return binary.AppendUvarint([]byte{number<<3 | 2}, size)
}

// writeAll writes n objects, each made from the encoded template.
func writeAll(w io.Writer, template []byte, n int, separator string) {
	pods := newNumbering(template)
	for i := range n {
		if i > 0 {
			_, _ = io.WriteString(w, separator)
		}
		_, _ = w.Write(pods.of(i))
	}
}
