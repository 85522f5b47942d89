// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func (s *stream) send(kind watch.EventType, v *version) {
	v = s.resource.show(v)
	s.sendAs(kind, v.encoded, v.object)
}

func (s *stream) sendAs(kind watch.EventType, e encoded, o *object) {
	s.sent++
	s.frame(kind, func() {
		if s.form == tableForm {
			s.writeTableRow(e, o)
			return
		}
		s.form.writeObject(s.out, e)
	})
}

// frame writes one event; the object is written by body.
func (s *stream) frame(kind watch.EventType, body func()) {
	s.out.WriteString(`{"type":"`)
	s.out.WriteString(string(kind))
	s.out.WriteString(`","object":`)
	body()
	s.out.WriteString("}\n")
}

const (
	bookmarkMeta = `"metadata":{"resourceVersion":"%d"}}`
	endMeta      = `"metadata":{"resourceVersion":"%d","annotations":{"` +
		metav1.InitialEventsAnnotationKey + `":"true"}}}`
)

func (s *stream) sendBookmark() {
	if !s.endDue && s.seen <= s.floor {
		return
	}
	kind, apiVersion, meta := s.resource.Kind, s.resource.apiVersion(), bookmarkMeta
	if s.form == partialForm {
		kind, apiVersion = "PartialObjectMetadata", metav1.SchemeGroupVersion.String()
	}
	if s.endDue {
		meta, s.endDue = endMeta, false
	}
	raw := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`+meta, kind, apiVersion, s.seen)
	s.frame(watch.Bookmark, func() {
		if s.form == tableForm {
			s.writeTableBookmark(raw)
			return
		}
		s.out.Write(raw)
	})
}

func (s *stream) sendError(err error) {
	status := statusOf(err)
	raw, encodeErr := json.Marshal(status)
	if encodeErr != nil {
		return
	}
	s.frame(watch.Error, func() { s.out.Write(raw) })
	_ = s.flush() // the stream ends here anyway
}

func (s *stream) flush() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
	return nil
}

// writeTableBookmark wraps the bookmark's object as a table does.
func (s *stream) writeTableBookmark(raw []byte) {
	t := s.newTable(metav1.ListMeta{ResourceVersion: strconv.FormatInt(s.seen, 10)}, !s.tableHead)
	s.tableHead = true
	row := metav1.TableRow{Cells: make([]any, len(s.resource.table.Columns))}
	row.Object.Raw = raw
	t.Rows = append(t.Rows, row)
	s.writeValue(t)
}

func (s *stream) writeTableRow(e encoded, o *object) {
	t := s.newTable(metav1.ListMeta{ResourceVersion: string(e.json[e.rvStart:e.rvEnd])},
		!s.tableHead)
	s.tableHead = true
	s.addRow(t, e, o)
	s.writeValue(t)
}

func (s *stream) writeValue(value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		return
	}
	s.out.Write(raw)
}
