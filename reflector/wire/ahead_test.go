// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

// mortal is a body that the server, or the client's timeout, cuts off at a time.
type mortal struct {
	io.Reader
	end time.Time
}

func (m mortal) Read(p []byte) (int, error) {
	if !time.Now().Before(m.end) {
		return 0, context.DeadlineExceeded
	}
	return m.Reader.Read(p)
}

func (m mortal) Close() error { return nil }

const slowly = 2 * time.Millisecond // for each object

// The items of a list are handed over even if their caller needs longer for them than the request
// may last.
func TestReadList_ASlowCallerDoesNotHoldTheRequest(t *testing.T) {
	const count = 4_000
	body := podList(t, count)
	for name, in := range map[string]io.Reader{
		"long reads":  bytes.NewReader(body),
		"short reads": iotest.HalfReader(bytes.NewReader(body)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := 0
				m, err := ReadList(mortal{in, time.Now().Add(5 * time.Second)}, newPod, Options{},
					func(runtime.Object) error {
						time.Sleep(slowly)
						got++
						return nil
					})
				require.NoError(t, err)
				require.Equal(t, count, got)
				require.Equal(t, "5", m.ResourceVersion)
			})
		})
	}
}

// The events that arrived before a watch was cut off are delivered, however slow the receiver is.
func TestReadWatch_ASlowReceiverDoesNotHoldTheRequest(t *testing.T) {
	const count = 4_000
	for _, contentType := range []string{jsonStream, protobufStream} {
		synctest.Test(t, func(t *testing.T) {
			event := encodeEvents(t, contentType, contents()[0])
			body := append(bytes.Repeat(event, count), event[:len(event)/2]...) // half an event
			w := ReadWatch(mortal{bytes.NewReader(body), time.Now().Add(5 * time.Second)}, newPod,
				Options{})
			got := 0
			for range w.ResultChan() {
				time.Sleep(slowly)
				got++
			}
			require.Equal(t, count, got)
		})
	}
}

// endless repeats data, up to size bytes a read, and counts what was read.
type endless struct {
	data       []byte
	size       int
	pos        int
	read       atomic.Int64
	closed     chan struct{}
	closeCount atomic.Int32
}

func (e *endless) Read(p []byte) (int, error) {
	select {
	case <-e.closed:
		return 0, errors.New("closed")
	default:
	}
	n := copy(p[:min(len(p), e.size)], e.data[e.pos:])
	e.pos = (e.pos + n) % len(e.data)
	e.read.Add(int64(n))
	return n, nil
}

func (e *endless) Close() error {
	if e.closeCount.Add(1) == 1 {
		close(e.closed)
	}
	return nil
}

// A watch is read ahead of its receiver up to half of Options.ReadAhead and its own chunks. Then
// the reading pauses until the receiver takes more, and Stop ends it.
func TestReadWatch_ReadsAheadUpToItsLimit(t *testing.T) {
	event := encodeEvents(t, jsonStream, contents()[0])
	for _, size := range []int{len(event), 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			const budget = 384 << 10
			limit := budget/2 + ownChunks*chunkBytes
			const buffered = 128 << 10 // taken by the decoder, or being read
			body := &endless{data: event, size: size, closed: make(chan struct{})}
			w := ReadWatch(body, newPod, Options{ReadAhead: NewBudget(budget)}).(*stream)
			synctest.Wait()
			ahead := body.read.Load()
			require.GreaterOrEqual(t, ahead, int64(limit))
			require.Less(t, ahead, int64(limit+buffered))
			w.in.mu.Lock()
			chunks := len(w.in.chunks)
			w.in.mu.Unlock()
			require.LessOrEqual(t, chunks, limit/chunkBytes, "reads of %d bytes", size)

			for range 2 * limit / len(event) {
				<-w.ResultChan()
			}
			synctest.Wait()
			require.Greater(t, body.read.Load(), ahead+int64(limit))
			require.Less(t, body.read.Load(), ahead+int64(2*limit+buffered))
			w.Stop()
			synctest.Wait() // the bubble ends only if every goroutine does
		})
	}
}

// emptyReads returns nothing count times before each Read of in.
type emptyReads struct {
	in           io.Reader
	count, empty int
}

func (e *emptyReads) Read(p []byte) (int, error) {
	if e.empty++; e.empty <= e.count {
		return 0, nil
	}
	e.empty = 0
	return e.in.Read(p)
}

// A body may return nothing 99 times in a row, but not for ever: a list would never end.
func TestReadList_EmptyReads(t *testing.T) {
	for count, want := range map[int]error{
		0: nil, 99: nil, 100: io.ErrNoProgress, math.MaxInt: io.ErrNoProgress,
	} {
		in := &emptyReads{in: iotest.OneByteReader(bytes.NewReader(podList(t, 2))), count: count}
		items, _, err := decodeAll(in, newPod)
		require.ErrorIs(t, err, want, "%d", count)
		require.Equal(t, want == nil, len(items) == 2)
	}
	_, _, err := decodeAll(&emptyReads{in: iotest.ErrReader(io.ErrClosedPipe), count: 99}, newPod)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// late returns or panics as in does, but a second later.
type late struct{ in io.Reader }

func (l late) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return l.in.Read(p)
}

// A panic of a body ends a Read that waits, and means nothing after stop.
func TestAhead_ALatePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := readAhead(late{panicReader{}}, nil)
		require.PanicsWithValue(t, "broken", func() { _, _ = a.Read(make([]byte, 1)) })
		a = readAhead(late{panicReader{}}, nil)
		synctest.Wait()
		a.stop()
		time.Sleep(2 * time.Second)
		_, err := a.Read(make([]byte, 1))
		require.Equal(t, errStopped, err)
	})
}

// An object is decoded when its turn comes: what waits is bytes.
func TestReadList_DecodesInTurn(t *testing.T) {
	const count = 20_000
	body := podList(t, count)
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		counting := func() runtime.Object {
			made.Add(1)
			return newPod()
		}
		took := 0
		_, err := ReadList(bytes.NewReader(body), counting, Options{}, func(runtime.Object) error {
			if took++; took%4_000 == 1 {
				synctest.Wait()
				require.LessOrEqual(t, made.Load(), int64(took+1), "and one as an example")
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, count, took)
	})
}
