// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const contentJSON = "application/json"

// form is the representation of the objects in an answer.
type form int

const (
	wholeForm   form = iota
	partialForm      // PartialObjectMetadata: the metadata alone
	tableForm        // Table: what kubectl get prints
)

// negotiate reads the Accept header. Objects are served as JSON only.
func negotiate(accept string) (form, error) {
	if accept == "" {
		return wholeForm, nil
	}
	understood := false
	for _, clause := range strings.Split(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(strings.TrimSpace(clause))
		if err != nil ||
			(mediaType != contentJSON && mediaType != "*/*" && mediaType != "application/*") {
			continue
		}
		understood = true
		if params["stream"] != "" && params["stream"] != "watch" {
			continue
		}
		known := params["g"] == metav1.GroupName &&
			(params["v"] == "v1" || params["v"] == "v1beta1")
		switch as := params["as"]; {
		case as == "" && params["g"] == "":
			return wholeForm, nil
		case as == "Table" && known:
			return tableForm, nil
		case (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") && known:
			return partialForm, nil
		}
	}
	if !understood {
		return wholeForm, genericError(http.StatusNotAcceptable)
	}
	return wholeForm, &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable,
		Reason:  metav1.StatusReasonNotAcceptable,
		Message: "only the following media types are accepted: " + contentJSON,
	}}
}

// statusOf returns err as a Status. Any other error becomes an internal error without a reason, as
// in the real server.
func statusOf(err error) *metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: err.Error()}
	var carrier apierrors.APIStatus
	if errors.As(err, &carrier) {
		status = carrier.Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return &status
}

func writeError(w http.ResponseWriter, err error) {
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	writeJSONAs(w, contentJSON, code, value)
}

func writeJSONAs(w http.ResponseWriter, contentType string, code int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// writeObject answers with one object.
func (c *call) writeObject(code int, v *version) {
	v = c.resource.show(v)
	if c.subresource == "scale" {
		scale, replicas, err := c.resource.scaleOf(v)
		if err == nil && replicas == unsetReplicas {
			err = fmt.Errorf("the spec replicas field %q does not exist", c.resource.scale.Replicas)
		}
		if err != nil {
			c.error(apierrors.NewInternalError(err))
			return
		}
		c, v = c.asScale(), scale
	}
	c.warnIgnored(v.object)
	if c.form == tableForm {
		writeJSON(c.w, code,
			c.table([]*version{v}, metav1.ListMeta{ResourceVersion: v.object.meta.ResourceVersion}))
		return
	}
	c.w.Header().Set("Content-Type", contentJSON)
	c.w.WriteHeader(code)
	out := bufferFor(c.w)
	defer out.free()
	c.form.writeObject(out, v.encoded)
	out.WriteByte('\n')
	out.Flush()
}

const partialHead = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`

// writeObject writes an object in whole or its metadata.
func (f form) writeObject(out *buffer, e encoded) {
	if f != partialForm {
		out.Write(e.json)
		return
	}
	out.WriteString(partialHead)
	out.Write(e.metadata())
	out.WriteByte('}')
}

// writeItem writes an object as an item of a list: there, built-in kinds do not repeat kind and
// apiVersion.
func (f form) writeItem(out *buffer, r *Resource, e encoded) {
	if f == wholeForm && r.builtin {
		out.WriteByte('{')
		out.Write(e.json[e.item:])
		return
	}
	f.writeObject(out, e)
}

// buffer collects an answer. After its first error it drops all writes, so that callers check only
// the error of Flush.
type buffer struct {
	*bufio.Writer
}

const bufferLen = 64 << 10

var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(io.Discard, bufferLen) }}

func bufferFor(w io.Writer) *buffer {
	b := buffers.Get().(*bufio.Writer)
	b.Reset(w)
	return &buffer{b}
}

func (b *buffer) free() {
	b.Reset(io.Discard)
	buffers.Put(b.Writer)
}
