// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"io"
	"math"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/internal/tools/answers"
)

const (
	slowly   = 2 * time.Millisecond // for each object
	ownBytes = 64 << 10             // of a watch
)

// The items of a list are handed over even if their caller needs longer for them than the request
// may last.
func TestReadList_ASlowCallerDoesNotHoldTheRequest(t *testing.T) {
	const count = 4_000
	body := answers.Pods(t, count)
	for name, in := range map[string]io.Reader{
		"long reads":  bytes.NewReader(body),
		"short reads": iotest.HalfReader(bytes.NewReader(body)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, end := 0, time.Now().Add(5*time.Second)
				m, err := ReadList(answers.Until(end, in), newPod, Options{},
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
	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		synctest.Test(t, func(t *testing.T) {
			event := answers.Events(t, contentType, answers.Samples()[0])
			body := append(bytes.Repeat(event, count), event[:len(event)/2]...) // half an event
			end := time.Now().Add(5 * time.Second)
			w := ReadWatch(answers.Until(end, bytes.NewReader(body)), newPod, Options{})
			got := 0
			for range w.ResultChan() {
				time.Sleep(slowly)
				got++
			}
			require.Equal(t, count, got)
		})
	}
}

// A watch is read ahead of its receiver up to half of Options.ReadAhead and its own chunks. Then
// the reading pauses until the receiver takes more, and Stop ends it.
func TestReadWatch_ReadsAheadUpToItsLimit(t *testing.T) {
	event := answers.Events(t, answers.JSON, answers.Samples()[0])
	for _, size := range []int{len(event), 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			const budget = 384 << 10
			limit := budget/2 + ownBytes
			const buffered = 128 << 10 // taken by the decoder, or being read
			body := &answers.Endless{Data: event, Size: size}
			w := ReadWatch(body, newPod, Options{ReadAhead: NewBudget(budget)}).(*stream)
			synctest.Wait()
			ahead := body.Count.Load()
			require.GreaterOrEqual(t, ahead, int64(limit))
			require.Less(t, ahead, int64(limit+buffered))
			for range 2 * limit / len(event) {
				<-w.ResultChan()
			}
			synctest.Wait()
			require.Greater(t, body.Count.Load(), ahead+int64(limit))
			require.Less(t, body.Count.Load(), ahead+int64(2*limit+buffered))
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
		pods := iotest.OneByteReader(bytes.NewReader(answers.Pods(t, 2)))
		in := &emptyReads{in: pods, count: count}
		items, _, err := decodeAll(in, newPod)
		require.ErrorIs(t, err, want, "%d", count)
		require.Equal(t, want == nil, len(items) == 2)
	}
	_, _, err := decodeAll(&emptyReads{in: iotest.ErrReader(io.ErrClosedPipe), count: 99}, newPod)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// An object is decoded when its turn comes: what waits is bytes.
func TestReadList_DecodesInTurn(t *testing.T) {
	const count = 20_000
	body := answers.Pods(t, count)
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
