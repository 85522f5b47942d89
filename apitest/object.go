// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// object is a parsed API object: its metadata as a struct, every other field as JSON.
type object struct {
	gvk  schema.GroupVersionKind
	meta metav1.ObjectMeta
	// by name; without kind, apiVersion and metadata; each in canonical form
	fields map[string]json.RawMessage
}

// parseObject parses JSON. The error texts are those of Kubernetes' decoder.
func parseObject(data []byte) (*object, error) {
	var typed struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		ObjectMeta metav1.ObjectMeta `json:"metadata"`
	}
	if err := utiljson.Unmarshal(data, &typed); err != nil {
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(typed.APIVersion)
	if err != nil {
		return nil, err
	}
	o := &object{gvk: gv.WithKind(typed.Kind), meta: typed.ObjectMeta}
	if err := utiljson.Unmarshal(data, &o.fields); err != nil {
		return nil, err
	}
	delete(o.fields, "kind")
	delete(o.fields, "apiVersion")
	delete(o.fields, "metadata")
	for name, raw := range o.fields {
		if o.fields[name], err = canonical(raw); err != nil {
			return nil, err
		}
		if string(o.fields[name]) == "null" {
			delete(o.fields, name)
		}
	}
	return o, nil
}

// canonical re-encodes JSON so that equal values are equal bytes.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// sameFields reports whether two objects are equal outside kind and metadata; the names in except
// are not compared.
func (o *object) sameFields(other *object, except string) bool {
	same := func(a, b *object) bool {
		for name, raw := range a.fields {
			if name != except && !bytes.Equal(raw, b.fields[name]) {
				return false
			}
		}
		return true
	}
	return same(o, other) && same(other, o)
}

// copy returns a copy of o. Its metadata and fields may be changed without changing o. The JSON is
// shared and never written to.
func (o *object) copy() *object {
	c := &object{gvk: o.gvk, fields: maps.Clone(o.fields)}
	o.meta.DeepCopyInto(&c.meta)
	return c
}

// setField sets a top-level field, or removes it if raw is nil.
func (o *object) setField(name string, raw json.RawMessage) {
	if raw == nil {
		delete(o.fields, name)
		return
	}
	if o.fields == nil {
		o.fields = map[string]json.RawMessage{}
	}
	o.fields[name] = raw
}

// edit decodes a top-level field that is a JSON object, lets change work on it, and sets the
// result.
func (o *object) edit(name string, change func(fields map[string]any)) {
	fields := map[string]any{}
	if raw := o.fields[name]; raw != nil && utiljson.Unmarshal(raw, &fields) != nil {
		fields = map[string]any{} // it is no object
	}
	change(fields)
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // decoded JSON can be encoded
	}
	o.setField(name, raw)
}

// setCondition sets a condition in the status. The time of its transition stays if its value does.
func (o *object) setCondition(kind, value, reason, message string) {
	o.edit("status", func(status map[string]any) {
		condition := map[string]any{"type": kind, "status": value,
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
		if reason != "" {
			condition["reason"], condition["message"] = reason, message
		}
		conditions, _ := status["conditions"].([]any)
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			old, _ := c.(map[string]any)
			if old["type"] == kind && old["status"] == value {
				condition["lastTransitionTime"] = old["lastTransitionTime"]
			}
			return old["type"] == kind
		})
		status["conditions"] = append(conditions, condition)
	})
}

// fieldAt returns the value at a path like "spec.nodeName" as field selectors see it: "" if absent.
func (o *object) fieldAt(path string) string {
	return lookup(o.fields, path, map[string]fieldMap{})
}

type fieldMap = map[string]json.RawMessage

// lookup walks down fields along path. Objects that were decoded on the way are kept in seen, by
// their path.
func lookup(fields fieldMap, path string, seen map[string]fieldMap) string {
	rest := path
	for {
		head, tail, more := strings.Cut(rest, ".")
		raw := fields[head]
		if raw == nil {
			return ""
		}
		if !more {
			return scalar(raw)
		}
		at := strings.TrimSuffix(path, "."+tail)
		inner, ok := seen[at]
		if !ok {
			_ = json.Unmarshal(raw, &inner) // only an object has fields
			seen[at] = inner
		}
		fields, rest = inner, tail
	}
}

// scalar returns a plain value as text, and "" for any other.
func scalar(raw json.RawMessage) string {
	var value any
	if utiljson.Unmarshal(raw, &value) != nil {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// encoded is an object as the server sends it, and the offsets of the parts that differ between
// answers.
//
//	{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},"spec":{...}}
//	                               ^item      ^metaStart                    ^rv ^metaEnd
type encoded struct {
	json []byte
	// start of "metadata"; a list of a built-in kind leaves out the fields to its left
	item      int
	metaStart int // the metadata object is json[metaStart:metaEnd]
	metaEnd   int
	rvStart   int // the digits of the resourceVersion are json[rvStart:rvEnd]
	rvEnd     int
}

const rvField = `"resourceVersion":"`

// encode writes the object with the given resourceVersion; 0 leaves it out, as the answer to a
// dry-run create does. The fields have the order of the real server's answers: kind, apiVersion,
// metadata, then the others by name. The object's fields become parts of the encoding, so that an
// object in the log is not held twice.
func (o *object) encode(rv int64) (encoded, error) {
	o.meta.ResourceVersion = ""
	if rv > 0 {
		o.meta.ResourceVersion = strconv.FormatInt(rv, 10)
	}
	var e encoded
	buf := make([]byte, 0, 1024)
	buf = append(buf, `{"kind":`...)
	buf = strconv.AppendQuote(buf, o.gvk.Kind)
	buf = append(buf, `,"apiVersion":`...)
	buf = strconv.AppendQuote(buf, o.gvk.GroupVersion().String())
	buf = append(buf, ',')
	e.item = len(buf)
	buf = append(buf, `"metadata":`...)
	meta, err := json.Marshal(&o.meta)
	if err != nil {
		return e, err
	}
	e.metaStart = len(buf)
	buf = append(buf, meta...)
	e.metaEnd = len(buf)
	e.rvStart = e.metaStart + bytes.Index(meta, []byte(rvField)) + len(rvField)
	e.rvEnd = e.rvStart + len(o.meta.ResourceVersion)
	ends := make(map[string]int, len(o.fields))
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		buf = append(buf, ',')
		key, err := json.Marshal(name)
		if err != nil {
			return e, err
		}
		buf = append(buf, key...)
		buf = append(buf, ':')
		buf = append(buf, o.fields[name]...)
		ends[name] = len(buf)
	}
	e.json = bytes.Clone(append(buf, '}')) // without spare capacity
	for name, end := range ends {
		start := end - len(o.fields[name])
		o.fields[name] = json.RawMessage(e.json[start:end:end])
	}
	return e, nil
}

// at returns the encoding with another resourceVersion.
func (e encoded) at(rv int64) encoded {
	digits := strconv.FormatInt(rv, 10)
	shift := len(digits) - (e.rvEnd - e.rvStart)
	c := e
	c.json = slices.Concat(e.json[:e.rvStart], []byte(digits), e.json[e.rvEnd:])
	c.rvEnd += shift
	c.metaEnd += shift
	return c
}

// metadata returns the JSON of the metadata alone.
func (e encoded) metadata() []byte { return e.json[e.metaStart:e.metaEnd] }
