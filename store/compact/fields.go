// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// fieldSeparator separates the values of a Fields. Encoded JSON never contains a line end.
	fieldSeparator = "\n"
	// notEncoded is before the error of a value that cannot be encoded. No JSON begins with it.
	notEncoded = "!"
)

// Fields holds the values of some fields of an object: see FieldsOf. Read them with Get.
//
// It is no object of the API: clients do not take it, and it is not encoded in JSON. Printing one
// shows its paths, not its values. A copy is guarded like the original.
type Fields struct {
	Meta
	paths  *fieldPaths
	values string // in JSON, by path
}

// fieldPaths are the paths of a form.
type fieldPaths struct {
	typ    reflect.Type // of the whole objects
	texts  []string
	parsed []path
}

// FieldsOf returns the form that gives readers a *Fields for each T. Paths are written with the
// names in JSON:
//
//	spec.nodeName
//	metadata.annotations['example.com/owner']
//	spec.containers[*].image
//
// A path may begin with a dot, as those of sizes.Sizes do. It panics if a T cannot have one of
// the paths, or if one cannot be read. Namespace, name, UID and resourceVersion are always kept, in
// the fields of Meta.
func FieldsOf[T any](paths ...string) Projection[T, *Fields] {
	form := &fieldPaths{typ: reflect.TypeFor[T]()}
	for _, text := range paths {
		text = strings.TrimPrefix(text, ".")
		form.texts = append(form.texts, text)
		parsed, err := parsePath(text)
		if err == nil {
			err = parsed.checkType(form.typ)
		}
		if err != nil {
			panic(fmt.Errorf("compact: fields of %v: %s: %w", form.typ, text, err))
		}
		form.parsed = append(form.parsed, parsed)
	}
	return Projection[T, *Fields]{project: func(obj T, meta Meta) (*Fields, error) {
		return form.of(obj, meta), nil
	}}
}

func (p *fieldPaths) of(obj any, meta Meta) *Fields {
	var values strings.Builder
	for i, path := range p.parsed {
		value, err := json.Marshal(path.value(reflect.ValueOf(obj)))
		if err != nil { // only readers of this field fail, not the informer
			value = []byte(notEncoded + strings.ReplaceAll(err.Error(), fieldSeparator, " "))
		}
		if i > 0 {
			values.WriteString(fieldSeparator)
		}
		values.Write(value)
	}
	return &Fields{meta, p, strings.Clone(values.String())}
}

// Get returns the value of a path that f keeps, as a V: a Go type that has the JSON of the field,
// such as string, map[string]string or []corev1.Container. A field that the object has not set is
// the zero V. The error is a *NotKeptError if FieldsOf was not given this path, but for example a
// part of it. The result is the caller's.
func Get[V any](f *Fields, path string) (V, error) {
	var v V
	i := slices.Index(f.paths.texts, strings.TrimPrefix(path, "."))
	if i < 0 {
		return v, &NotKeptError{Type: f.paths.typ, Path: path, Kept: f.paths.texts}
	}
	raw := strings.Split(f.values, fieldSeparator)[i]
	if failed, ok := strings.CutPrefix(raw, notEncoded); ok {
		return v, fmt.Errorf("read %s of %s: it could not be encoded: %s", path, f.key(), failed)
	}
	if err := utiljson.Unmarshal([]byte(raw), &v); err != nil {
		return v, fmt.Errorf("read %s of %s: %w", path, f.key(), err)
	}
	return v, nil
}

// NotKeptError reports that a path was read that the store does not keep.
type NotKeptError struct {
	Type reflect.Type // of the whole objects
	Path string
	Kept []string
}

// Error names the path, and the paths that are kept.
func (e *NotKeptError) Error() string {
	return fmt.Sprintf("field %s of %v is not kept, only %s", e.Path, e.Type,
		strings.Join(e.Kept, ", "))
}

// SelectorLabels returns the labels, for label selectors of listers. It fails unless
// metadata.labels or metadata is kept.
func (f *Fields) SelectorLabels() (map[string]string, error) {
	if slices.Contains(f.paths.texts, "metadata") {
		meta, err := Get[metav1.ObjectMeta](f, "metadata")
		return meta.Labels, err
	}
	return Get[map[string]string](f, "metadata.labels")
}

// MarshalJSON fails: a server would take f for the whole object.
func (f Fields) MarshalJSON() ([]byte, error) {
	const text = "%s holds only some fields, and must not be sent to a server"
	return nil, fmt.Errorf(text, f.String())
}

func (f *Fields) sizes() (encoded map[string]int64, rest any) {
	sizes := map[string]int64{".": int64(unsafe.Sizeof(*f) - unsafe.Sizeof(f.Meta))}
	values := strings.Split(f.values, fieldSeparator)
	for i, text := range f.paths.texts {
		sizes["."+text] += int64(len(values[i]))
	}
	return sizes, &f.Meta
}

// String returns the name and the paths, for messages. It has no values: f may be of a Secret.
func (f Fields) String() string {
	if f.paths == nil {
		return "no Fields"
	}
	return fmt.Sprintf("%s@%s with %s", f.key(), f.ResourceVersion,
		strings.Join(f.paths.texts, ", "))
}

// Format prints String, whatever the verb: %#v and %d would print the values.
func (f Fields) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, f.String()) // fmt has no use for an error
}
