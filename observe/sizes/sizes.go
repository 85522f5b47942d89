// SPDX-License-Identifier: Apache-2.0

// Package sizes estimates how much memory the objects of a store take, by field.
//
//	store -> [sizes] -> health, metrics
//
// To use it, call [Measure], or a [Meter] for pages and scrapers that ask often. To read it, start
// with sizes.go. Then run go test -v ./observe/sizes. Goroutines: a Meter has one during a
// measurement. Locking: a Meter has one mutex, and holds it while it copies numbers.
package sizes

import (
	"cmp"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/store"
)

const (
	// maxSampled is the number of objects that Sizes are measured of.
	maxSampled = 100
	// maxValues bounds the values (fields, elements) that are visited in all, and in one object.
	maxValues       = 1_000_000
	maxObjectValues = 100_000
	// maxNested bounds the depth in an object: it may contain itself.
	maxNested = 100
	// maxPaths bounds the paths of Sizes, and maxPathBytes the length of each.
	maxPaths     = 1000
	maxPathBytes = 512

	annotations = ".metadata.annotations"
)

// Sizes estimates the memory of the objects in a store, by field. It shows what a transform or a
// selection of fields would save.
//
// All numbers are bytes of memory, not of JSON. They are measured in a sample of at most 100
// objects, which are spread over the store, and multiplied. The sum of the sample
// is usually within 10 % of what the allocator gave. Where objects differ in size, the sample adds
// an error of about 10 % of their standard deviation.
//
// The sizes of a store with a form of package compact are those of the packed objects.
//
// Not counted are the store's own map, keys and indexes. A text or an array that several objects
// share is counted for each of them. An object with more than 100,000 fields and elements is
// counted in part.
type Sizes struct {
	// Objects is the number of objects in the store, and Sampled the number of those measured.
	Objects, Sampled int
	// Bytes is the estimate for all objects.
	Bytes int64
	// Fields are the parts of Bytes, the largest first.
	Fields []Field
}

// Field is the estimate for one field in all objects.
type Field struct {
	// Path is the name of the field in JSON, such as ".spec.containers", with at most two parts.
	// Each annotation has a path of its own, except in Secrets and in a compact.Summary. The keys
	// of other maps of texts are in no path: they are content. Path is "." for what is in no field.
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// Share is the part of the Bytes of Sizes, from 0 to 1.
	Share float64 `json:"share"`
}

// Measure measures the objects of a store. It takes some milliseconds, and about a tenth of a
// second at most. It lists the keys of the store once, and gets the objects of the sample by key:
// a program that changes them meanwhile can crash, as it can while other readers read them.
func Measure(stored store.Store) Sizes {
	for {
		wrapper, ok := stored.(interface{ Unwrap() store.Indexer })
		if !ok {
			break
		}
		stored = wrapper.Unwrap()
	}
	if compacted, ok := stored.(interface{ Packed() store.Indexer }); ok {
		stored = compacted.Packed()
	}
	keys := stored.ListKeys()
	s := Sizes{Objects: len(keys)}
	m := measuring{fields: map[string]int64{}}
	n := min(len(keys), maxSampled)
	for i := 0; i < n && m.visited < maxValues; i++ {
		obj, exists, err := stored.GetByKey(keys[i*len(keys)/n])
		if err == nil && exists {
			s.Sampled++
			m.object(obj)
		}
	}
	for path, measured := range m.fields {
		all := int64(float64(measured) / float64(s.Sampled) * float64(s.Objects))
		s.Bytes += all
		s.Fields = append(s.Fields, Field{Path: path, Bytes: all})
	}
	slices.SortFunc(s.Fields, func(a, b Field) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Path, b.Path))
	})
	for i := range s.Fields {
		s.Fields[i].Share = float64(s.Fields[i].Bytes) / float64(max(s.Bytes, 1))
	}
	return s
}

// Field returns the size of the field with a path; zero if the objects do not have it.
func (s Sizes) Field(path string) Field {
	for _, f := range s.Fields {
		if f.Path == path {
			return f
		}
	}
	return Field{Path: path}
}

// String returns the sum, and the five largest fields with their shares.
func (s Sizes) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d objects, about %d kB", s.Objects, s.Bytes/1000)
	for i, f := range s.Fields[:min(5, len(s.Fields))] {
		before := ", "
		if i == 0 {
			before = ": "
		}
		fmt.Fprintf(&b, "%s%s %.0f %%", before, f.Path, 100*f.Share)
	}
	return b.String()
}

// measuring adds up the bytes of the sample by path.
type measuring struct {
	fields  map[string]int64
	visited int // values
	end     int // of visited, for the present object
	secret  bool
}

func (m *measuring) object(obj any) {
	m.end = m.visited + maxObjectValues
	m.secret = objects.IsSecret(obj)
	if p, ok := obj.(interface {
		Sizes() (encoded map[string]int64, rest any)
	}); ok {
		m.secret = true // a Summary may be of one
		encoded, rest := p.Sizes()
		for path, n := range encoded {
			m.add(path, n)
		}
		obj = rest
	}
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
		obj = u.UnstructuredContent()
	}
	v := reflect.ValueOf(obj)
	if v.IsValid() {
		m.split("", v, 0, boxed(v))
	}
}

func (m *measuring) add(path string, n int64) {
	if _, exists := m.fields[path]; !exists && len(m.fields) >= maxPaths {
		path = "."
	}
	m.fields[cmp.Or(path, ".")] += n
}

// split adds the bytes of a value to its path, or to those of its fields. own is the memory of the
// value without what it refers to. depth is the number of names in the path.
func (m *measuring) split(path string, v reflect.Value, depth int, own int64) {
	m.visited++
	switch {
	case m.visited > m.end:
		m.add(path, own)
	case v.Kind() == reflect.Pointer && !v.IsNil():
		m.add(path, own)
		m.split(path, v.Elem(), depth, allocated(v.Elem().Type().Size()))
	case v.Kind() == reflect.Interface && !v.IsNil():
		m.add(path, own)
		m.split(path, v.Elem(), depth, boxed(v.Elem()))
	case v.Kind() == reflect.Struct && depth < 2 && v.Type() != reflect.TypeFor[time.Time]():
		for i := range v.NumField() {
			name, inline := fieldName(v.Type().Field(i))
			switch size := int64(v.Field(i).Type().Size()); {
			case inline:
				m.split(path, v.Field(i), depth, size)
			default:
				m.split(path+"."+name, v.Field(i), depth+1, size)
			}
		}
	case m.hasNames(path, v, depth):
		m.add(path, own+tableBytes(v))
		for entries := v.MapRange(); entries.Next(); {
			name := path
			if text := entries.Key().String(); len(path)+len(text) < maxPathBytes {
				name += "." + text
			}
			m.split(name, entries.Value(), depth+1, m.beyond(entries.Key(), 0))
		}
	default:
		m.add(path, own+m.beyond(v, 0))
	}
}

// hasNames reports whether the keys of a map are names of fields: those of objects without a Go
// type are, and we count annotations as fields. Data has keys of its user in any case.
func (m *measuring) hasNames(path string, v reflect.Value, depth int) bool {
	if v.Kind() != reflect.Map || v.Type().Key().Kind() != reflect.String {
		return false
	}
	if path == annotations {
		return !m.secret
	}
	data := path == ".data" || path == ".stringData" || path == ".binaryData" ||
		path == ".metadata.labels"
	return v.Type().Elem().Kind() == reflect.Interface && depth < 2 && !data
}

// fieldName returns the name of a field in JSON. The fields of an inline one are those of its
// parent.
func fieldName(f reflect.StructField) (name string, inline bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	inline = f.Type.Kind() == reflect.Struct && name == "" &&
		(f.Anonymous || strings.Contains(options, "inline"))
	return cmp.Or(strings.TrimPrefix(name, "-"), f.Name), inline
}

// beyond returns the memory that a value refers to. The value itself is not part of it.
func (m *measuring) beyond(v reflect.Value, nested int) (n int64) {
	if m.visited++; m.visited > m.end || nested > maxNested {
		return 0
	}
	switch v.Kind() {
	case reflect.String:
		return textBytes(v.Len())
	case reflect.Pointer:
		if !v.IsNil() {
			n = allocated(v.Elem().Type().Size()) + m.beyond(v.Elem(), nested+1)
		}
	case reflect.Interface:
		if !v.IsNil() {
			n = boxed(v.Elem()) + m.beyond(v.Elem(), nested+1)
		}
	case reflect.Slice:
		n = allocated(uintptr(v.Cap()) * v.Type().Elem().Size())
		fallthrough
	case reflect.Array:
		for i := 0; i < v.Len() && refers(v.Type().Elem()) && m.visited <= m.end; i++ {
			n += m.beyond(v.Index(i), nested+1)
		}
	case reflect.Struct:
		for i := 0; i < v.NumField() && refers(v.Type()); i++ {
			n += m.beyond(v.Field(i), nested+1)
		}
	case reflect.Map:
		n = tableBytes(v)
		for entries := v.MapRange(); entries.Next() && m.visited <= m.end; {
			n += m.beyond(entries.Key(), nested+1) + m.beyond(entries.Value(), nested+1)
		}
	}
	return n
}

// refers reports whether values of a type may refer to memory that is theirs. A time refers to its
// time zone, which it shares.
func refers(t reflect.Type) bool {
	return t.Kind() > reflect.Complex128 && t != reflect.TypeFor[time.Time]()
}

// allocated rounds about as the allocator does: to 8 or 16 bytes, or an eighth of a power of two.
func allocated(size uintptr) int64 {
	step := uintptr(8)
	if size > 32 {
		step = max(16, uintptr(1)<<(bits.Len(uint(size))-1)/8)
	}
	return int64((size + step - 1) / step * step)
}

// textBytes does not round short texts: they are allocated together.
func textBytes(length int) int64 {
	if length < 16 {
		return int64(length)
	}
	return allocated(uintptr(length))
}

// boxed returns the memory of a value in an interface. A pointer is in the interface itself.
func boxed(v reflect.Value) int64 {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer,
		reflect.Bool:
		return 0
	}
	return allocated(v.Type().Size())
}

// tableBytes returns the memory of a map without what its entries refer to: a header, and groups of
// eight slots. A map grows before it uses more than seven of eight.
func tableBytes(v reflect.Value) int64 {
	if v.IsNil() {
		return 0
	}
	const header = 48
	group := 8 + 8*(v.Type().Key().Size()+v.Type().Elem().Size())
	switch n := v.Len(); {
	case n == 0:
		return header
	case n <= 8:
		return header + allocated(group)
	default:
		groups := uintptr(1) << bits.Len(uint((n-1)/7))
		return header + allocated(groups*group)
	}
}
