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
//	body -> read, one goroutine -> waiting -> decode, some goroutines -> objects, the caller's
//
// A slow caller does not stop the reading: the bytes wait here instead, and are decoded shortly
// before their turn. A batch ends when it is long enough, and before each Read, which may block. So
// an event never waits for the one after it.
//
//	W1  read pauses only while more than ahead bytes wait
//	W2  an object is handed over once those of all frames before it were
//	W3  an error is returned once all objects before it were handed over
//	W4  at most maxWindow batches are decoded before their turn
type pipeline struct {
	decode  func(f frame, raw []byte) (kruntime.Object, error)
	ahead   int64
	current *batch        // only read uses it
	err     error         // why objects ended, unless its caller stopped it
	stopped chan struct{} // closed by stop

	mu       sync.Mutex
	changed  sync.Cond // of the fields below
	waiting  []*batch  // flushed and not yet taken by the caller of objects
	bytes    int64     // in them
	ended    bool      // read has ended, with readErr or panicked
	readErr  error
	panicked any
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

var batchPool = sync.Pool{New: func() any { return &batch{bytes: make([]byte, 0, batchBytes)} }}

var errStopped = errors.New("stopped")

// startPipeline starts read, which reads from in and calls add with each frame and its bytes. read
// is at most ahead bytes and a batch ahead of the caller of objects.
func startPipeline(
	in *input, ahead int64, read func(add func(frame, []byte) error) error,
	decode func(f frame, raw []byte) (kruntime.Object, error),
) *pipeline {
	p := &pipeline{decode: decode, ahead: ahead, stopped: make(chan struct{})}
	p.changed.L = &p.mu
	in.beforeRead = p.flush
	go p.run(read)
	return p
}

func (p *pipeline) run(read func(add func(frame, []byte) error) error) {
	var err error
	defer func() {
		panicked := recover()
		if flushErr := p.flush(); flushErr != nil {
			err = flushErr
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended, p.readErr, p.panicked = true, err, panicked
		p.changed.Broadcast()
	}()
	err = read(p.add)
}

// stop ends read at its next batch. Closing the body ends it at once. It may be called once.
func (p *pipeline) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.stopped)
	p.changed.Broadcast()
}

func (p *pipeline) isStopped() bool {
	select {
	case <-p.stopped:
		return true
	default:
		return false
	}
}

// add copies a frame to the current batch.
func (p *pipeline) add(f frame, raw []byte) error {
	if p.current != nil && !p.current.fits(raw) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.current == nil {
		p.current = batchPool.Get().(*batch)
	}
	p.current.add(f, raw)
	return nil
}

// fits reports whether b stays short with more bytes.
func (b *batch) fits(raw []byte) bool { return len(b.bytes)+len(raw) <= batchBytes }

func (b *batch) add(f frame, raw []byte) {
	b.bytes = append(b.bytes, raw...)
	f.end = len(b.bytes)
	b.frames = append(b.frames, f)
}

// flush ends the current batch, and hands it to the caller of objects.
func (p *pipeline) flush() error {
	b := p.current
	if b == nil {
		return nil
	}
	p.current = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.bytes > p.ahead && !p.isStopped() {
		p.changed.Wait()
	}
	if p.isStopped() {
		return errStopped
	}
	p.bytes += int64(len(b.bytes))
	if last := len(p.waiting) - 1; last >= 0 && p.waiting[last].takes(b) {
		b.recycle()
		return nil
	}
	p.waiting = append(p.waiting, b)
	p.decodeAheadLocked(len(p.waiting) - 1)
	p.changed.Broadcast()
	return nil
}

// takes appends other to b if both are short and b is not being decoded. If not, many short reads
// would need many batches.
func (b *batch) takes(other *batch) bool {
	if b.decoded != nil || !b.fits(other.bytes) {
		return false
	}
	begin := 0
	for _, f := range other.frames {
		end := f.end
		b.add(f, other.bytes[begin:end])
		begin = end
	}
	return true
}

// window is how many batches may be decoded before their turn.
func window() int { return min(runtime.GOMAXPROCS(0), maxWindow) }

// decodeAheadLocked starts to decode waiting[i] if it is in the window. waiting[0] is next, so the
// caller of objects decodes it.
func (p *pipeline) decodeAheadLocked(i int) {
	if i < 1 || i >= min(len(p.waiting), window()) {
		return
	}
	b := p.waiting[i]
	if b.decoded != nil {
		return
	}
	b.decoded = make(chan struct{})
	go func() {
		defer close(b.decoded)
		p.decodeBatch(b)
	}()
}

// next takes the batch that waits longest, or waits for one. It returns nil once read has ended.
func (p *pipeline) next() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) == 0 && !p.ended {
		p.changed.Wait()
	}
	if len(p.waiting) == 0 {
		return nil
	}
	b := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	p.bytes -= int64(len(b.bytes))
	p.decodeAheadLocked(window() - 1)
	p.changed.Broadcast()
	return b
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
		for b := p.next(); b != nil; b = p.next() {
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
	if cap(b.bytes) == batchBytes {
		*b = batch{bytes: b.bytes[:0], frames: b.frames[:0], objects: b.objects[:0]}
		batchPool.Put(b)
	}
}
