// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"iter"
	"runtime"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// pipeline decodes the frames of a body in parallel, and hands the objects over in order.
//
//	body -> read, one goroutine -> batches -> decode, some goroutines -> objects, the caller's
//
// A batch ends when it is long enough, and before each Read, which may block. So an event never
// waits for the one after it.
//
//	W1  at most cap(batches) batches wait, so a slow caller stops the reading
//	W2  an object is handed over once those of all frames before it were
//	W3  an error is returned once all objects before it were handed over
type pipeline struct {
	decode   func(f frame, raw []byte) (kruntime.Object, error)
	current  *batch      // only read uses it
	batches  chan *batch // closed once read has ended
	readErr  error       // set before batches is closed, as is panicked
	panicked any         // what read panicked with
	err      error       // why objects ended, unless its caller stopped it
	stopped  chan struct{}
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
	objects  []kruntime.Object // those of frames[:len(objects)]
	err      error             // of the frame after them
	panicked any
	decoded  chan struct{} // closed once it is decoded; nil if the caller of objects decodes it
}

const (
	batchBytes = 32 << 10
	maxWindow  = 8 // the store could not take the objects of more
)

var batchPool = sync.Pool{New: func() any { return &batch{} }}

var errStopped = errors.New("stopped")

// startPipeline starts read, which reads from in and calls add with each frame and its bytes.
func startPipeline(
	in *input, read func(add func(frame, []byte) error) error,
	decode func(f frame, raw []byte) (kruntime.Object, error),
) *pipeline {
	p := &pipeline{
		decode:  decode,
		batches: make(chan *batch, min(runtime.GOMAXPROCS(0), maxWindow)),
		stopped: make(chan struct{}),
	}
	in.beforeRead = p.flush
	go func() {
		defer close(p.batches)
		defer func() {
			p.panicked = recover()
			if err := p.flush(); err != nil {
				p.readErr = err
			}
		}()
		p.readErr = read(p.add)
	}()
	return p
}

// stop ends read at its next batch. Closing the body ends it at once. It may be called once.
func (p *pipeline) stop() { close(p.stopped) }

// add copies a frame to the current batch.
func (p *pipeline) add(f frame, raw []byte) error {
	if p.current == nil {
		p.current = batchPool.Get().(*batch)
	}
	b := p.current
	b.bytes = append(b.bytes, raw...)
	f.end = len(b.bytes)
	b.frames = append(b.frames, f)
	if len(b.bytes) >= batchBytes {
		return p.flush()
	}
	return nil
}

// flush ends the current batch. If a batch is waiting, the caller of objects is busy, and another
// goroutine decodes this one.
func (p *pipeline) flush() error {
	b := p.current
	if b == nil {
		return nil
	}
	p.current = nil
	if len(p.batches) > 0 {
		b.decoded = make(chan struct{})
		go func() {
			defer close(b.decoded)
			p.decodeBatch(b)
		}()
	}
	select {
	case p.batches <- b:
		return nil
	case <-p.stopped:
		return errStopped
	}
}

func (p *pipeline) decodeBatch(b *batch) {
	defer func() { b.panicked = recover() }()
	begin := 0
	for _, f := range b.frames {
		obj, err := p.decode(f, b.bytes[begin:f.end])
		if err != nil {
			b.err = err
			return
		}
		b.objects = append(b.objects, obj)
		begin = f.end
	}
}

// objects returns the objects with their frames, in order, and sets err at the end. A panic of a
// decoder or of read is the caller's. The caller must call stop afterwards.
func (p *pipeline) objects() iter.Seq2[frame, kruntime.Object] {
	return func(yield func(frame, kruntime.Object) bool) {
		for b := range p.batches {
			if b.decoded == nil {
				p.decodeBatch(b)
			} else {
				<-b.decoded
			}
			for i, obj := range b.objects {
				if !yield(b.frames[i], obj) {
					return
				}
			}
			if b.panicked != nil {
				panic(b.panicked)
			}
			if b.err != nil {
				p.err = b.err
				return
			}
			b.recycle()
		}
		if p.panicked != nil {
			panic(p.panicked)
		}
		p.err = p.readErr
	}
}

// recycle makes an empty batch available to other pipelines.
func (b *batch) recycle() {
	clear(b.frames)
	clear(b.objects)
	if cap(b.bytes) <= 2*batchBytes {
		*b = batch{bytes: b.bytes[:0], frames: b.frames[:0], objects: b.objects[:0]}
		batchPool.Put(b)
	}
}
