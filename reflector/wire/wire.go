// SPDX-License-Identifier: Apache-2.0

// Package wire reads the answers of an API server: a LIST item by item, a WATCH event by event.
//
//	API server -> bytes - [wire] - objects -> reflector
//
// To use it, call informer.New, or make a [ListWatch] with [NewListWatch] for a reflector of your
// own. [ReadList] and [ReadWatch] read an answer that a program has requested itself.
//
// A body is read ahead as bytes (package internal/readahead, budget.go) and cut into frames of one
// object each (list.go, watch.go, jsontokens.go, protobuf.go). Each frame is decoded when its turn
// comes (package internal/decode), into an object of the kind that was requested (decoder.go,
// kind.go).
//
// Read listwatch.go and repeat.go (the requests), then the files above in their order; then go test
// -v ./reflector/wire. Goroutines: one reads a body until its end, and one hands over the events of
// a watch until it is stopped. The caller's goroutine hands over the items of a list. Locking: none
// of its own. A body's waiting bytes and the strings that objects share have mutexes in the two
// other packages, which are held for additions alone or for one object at a time.
//
// Source: rest/request.go Request, rest/watch/decoder.go Decoder
package wire

import (
	"cmp"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options say what an answer contains and how much of it may be read. The zero value of each field
// is its default.
type Options struct {
	// Kind is the group, version and kind of the objects. The default kind is the name of their Go
	// type, and any kind for *unstructured.Unstructured and *metav1.PartialObjectMetadata. If
	// Version is "", group and version are those of the client, or any without a client. A list of
	// another kind is an error, even if it is empty. A watch event of another kind has an
	// *unstructured.Unstructured.
	Kind schema.GroupVersionKind
	// ListKind is the kind of a list of them. The default is the kind of the objects and "List". It
	// matters only for lists that are empty or have items without a kind.
	ListKind string
	// Modify may change the options of each request, mostly to set selectors.
	Modify func(options *metav1.ListOptions)
	// ReadAhead bounds the bytes of watches that were read and not yet cut into events. Without
	// room in it, the reading pauses, and after some time the server ends such a watch. The default
	// is one Budget of 16 MiB for all watches of a client and its server; those of clients that are
	// not known, such as ReadWatch's, share another one. A LIST is read ahead whole.
	ReadAhead *Budget
	// Limits bound the memory that an answer takes.
	Limits Limits
}

// Limits bound what a server can make a program read into memory. A list that exceeds one ends with
// an error that wraps ErrTooLarge, a watch with an ERROR event that has its text. A limit of 0 or
// less is the default.
//
// JSON may be nested 10,000 levels deep, as for the decoder of Kubernetes. That is no option.
type Limits struct {
	// ObjectBytes bounds an item of a list, an event of a watch, and any other field of a list. The
	// default is 16 MiB, as for the watch of client-go.
	ObjectBytes int
	// ListBytes bounds one LIST, or one page of it. The default is 16 GiB.
	ListBytes int64
}

// ErrTooLarge is the error of an answer that exceeds one of Limits.
var ErrTooLarge = errors.New("answer of the server is too large")

func (l Limits) orDefaults() Limits {
	return Limits{
		ObjectBytes: cmp.Or(max(l.ObjectBytes, 0), 16<<20),
		ListBytes:   cmp.Or(max(l.ListBytes, 0), 16<<30),
	}
}

// NewObject makes an empty object of the type that a collection has: a pointer to a typed object,
// *unstructured.Unstructured, or *metav1.PartialObjectMetadata. It is called for each object,
// and several lists and watches may call it at once.
type NewObject func() runtime.Object
