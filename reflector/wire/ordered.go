// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"runtime"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// ordered decodes frames on several processors, and delivers their objects in order.
//
//	add -> current -> pending, being decoded -> deliver
//
// The goroutine that calls add and flush also delivers the objects, and decodes those that no other
// goroutine has begun to decode.
//
//	W1  an object is delivered once those of all frames before it were
//	W2  at most maxWindow batches are decoded before their turn
//	W3  flush delivers all objects, so nothing waits for bytes that have not arrived
type ordered struct {
	decode  func(f frame, raw []byte) (kruntime.Object, error)
	deliver func(f frame, obj kruntime.Object) error
	current *batch   // being filled
	pending []*batch // the oldest first
	err     error    // of decode or deliver; nothing is delivered after it
}

// frame describes an object that is not decoded yet.
type frame struct {
	event watch.EventType // "" for an item of a list
	of    metav1.TypeMeta // of the object, or of the list
	end   int             // in the batch's bytes
}

// batch is some frames in a row, and their objects.
type batch struct {
	bytes    []byte
	frames   []frame
	decoded  chan struct{}     // closed once it is decoded; nil if its turn decodes it
	objects  []kruntime.Object // those of frames[:len(objects)]
	err      error             // of the frame after them
	panicked any
}

const (
	batchBytes = 32 << 10 // a longer batch is full
	maxWindow  = 8        // the store could not take the objects of more
)

var batchPool = sync.Pool{New: func() any { return &batch{} }}

// recycle makes an empty batch available to other bodies, unless one object made it long.
func (b *batch) recycle() {
	if cap(b.bytes) > 2*batchBytes {
		return
	}
	clear(b.frames)
	clear(b.objects)
	*b = batch{bytes: b.bytes[:0], frames: b.frames[:0], objects: b.objects[:0]}
	batchPool.Put(b)
}

// add copies a frame to the current batch.
func (o *ordered) add(f frame, raw []byte) error {
	if o.current == nil {
		o.current = batchPool.Get().(*batch)
	}
	b := o.current
	b.bytes = append(b.bytes, raw...)
	f.end = len(b.bytes)
	b.frames = append(b.frames, f)
	if len(b.bytes) < batchBytes {
		return nil
	}
	return o.endBatch()
}

// endBatch has the current batch decoded, by another goroutine unless it is the next to deliver. It
// delivers the oldest if that leaves a pending batch for each processor.
func (o *ordered) endBatch() error {
	b := o.current
	o.current = nil
	o.pending = append(o.pending, b)
	if len(o.pending) > 1 {
		b.decoded = make(chan struct{})
		go func() {
			defer close(b.decoded)
			b.decode(o.decode)
		}()
	}
	if len(o.pending) > min(runtime.GOMAXPROCS(0), maxWindow) {
		o.deliverOldest()
	}
	return o.err
}

// flush delivers everything.
func (o *ordered) flush() error {
	if o.current != nil { // then there is no error yet
		_ = o.endBatch() // it is o.err
	}
	for o.err == nil && len(o.pending) > 0 {
		o.deliverOldest()
	}
	return o.err
}

// deliverOldest delivers the objects of a batch. A panic of the decoder becomes the caller's.
func (o *ordered) deliverOldest() {
	b := o.pending[0]
	o.pending = o.pending[1:]
	if b.decoded != nil {
		<-b.decoded
	} else {
		b.decode(o.decode)
	}
	for i, obj := range b.objects {
		if o.err = o.deliver(b.frames[i], obj); o.err != nil {
			return
		}
	}
	if b.panicked != nil {
		panic(b.panicked)
	}
	if o.err = b.err; o.err == nil {
		b.recycle()
	}
}

func (b *batch) decode(decode func(frame, []byte) (kruntime.Object, error)) {
	defer func() { b.panicked = recover() }()
	begin := 0
	for _, f := range b.frames {
		obj, err := decode(f, b.bytes[begin:f.end])
		if err != nil {
			b.err = err
			return
		}
		b.objects = append(b.objects, obj)
		begin = f.end
	}
}
