// SPDX-License-Identifier: Apache-2.0

package readahead

import (
	"bytes"
	"io"
	"math/rand"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("broken") }

// late returns or panics as in does, but a second later.
type late struct{ in io.Reader }

func (l late) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return l.in.Read(p)
}

// A panic of a body ends a Read that waits, and means nothing after Stop.
func TestAhead_ALatePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(late{panicReader{}}, nil)
		require.PanicsWithValue(t, "broken", func() { _, _ = a.Read(make([]byte, 1)) })
		a = New(late{panicReader{}}, nil)
		synctest.Wait()
		a.Stop()
		time.Sleep(2 * time.Second)
		_, err := a.Read(make([]byte, 1))
		require.Equal(t, ErrStopped, err)
	})
}

// An idle Reader holds no chunk, whatever the sizes of the events before and of the reads: R4. Each
// event is read as it was written.
func TestReader_IdleHoldsNoChunk(t *testing.T) {
	for _, budget := range []*Budget{nil, {}, {free: 3 * chunkBytes}} {
		synctest.Test(t, func(t *testing.T) {
			body, server := io.Pipe()
			r := New(body, budget)
			holds := func() int {
				synctest.Wait()
				r.mu.Lock()
				defer r.mu.Unlock()
				require.True(t, r.share == nil || r.share.held == beyondOwn(len(r.chunks)))
				return len(r.chunks)
			}
			random := rand.New(rand.NewSource(1))
			require.Zero(t, holds(), "before the first byte")
			for range 300 {
				most := []int{3, smallBytes, 6 * chunkBytes}[random.Intn(3)]
				event := make([]byte, 1+random.Intn(most))
				_, _ = random.Read(event)
				go func() { _, _ = server.Write(event) }()
				synctest.Wait()
				begin, err := r.First()
				require.NoError(t, err)
				require.Equal(t, event[0], begin)
				got := make([]byte, len(event))
				for left := got; len(left) > 0; {
					n, err := r.Read(left[:min(len(left), 1+random.Intn(2*chunkBytes))])
					require.NoError(t, err)
					left = left[n:]
				}
				require.True(t, bytes.Equal(event, got))
				if len(event)%smallBytes != 0 {
					require.Zero(t, holds(), "after %d bytes", len(event))
				}
			}
			r.Stop()
			_ = body.Close()
		})
	}
}

// A Reader that waits for a chunk, and is read before it gets one, holds nothing of the Budget once
// it is idle.
func TestReader_IsReadBeforeTheGrant(t *testing.T) {
	b := &Budget{free: chunkBytes}
	other := &share{budget: b}
	require.True(t, other.reserve(ownChunks+1))
	r := &Reader{share: &share{budget: b, wake: func() {}}}
	r.changed.L = &r.mu
	for range ownChunks {
		r.chunks = append(r.chunks, make([]byte, chunkBytes))
		r.waiting += chunkBytes
	}
	require.False(t, r.share.reserve(ownChunks+1), "run waits")
	for i := range ownChunks {
		_, err := r.Read(make([]byte, chunkBytes))
		require.NoError(t, err)
		if i == 0 {
			other.giveBack(0)
		}
	}
	require.EqualValues(t, chunkBytes, b.free)
	require.Empty(t, b.waiting)
}

// source is a body with other bytes at each offset, in reads of random sizes. They often end next
// to the end of a chunk.
type source struct {
	random *rand.Rand
	seed   int
	offset int
	count  atomic.Int64
	end    int
}

// at is the byte at an offset.
func (s *source) at(offset int) byte { return byte(offset*31 + offset>>8*7 + s.seed) }

func (s *source) Read(p []byte) (int, error) {
	if s.offset == s.end {
		return 0, io.EOF
	}
	n := []int{1, len(p) / 2, len(p) - 1, len(p), s.random.Intn(len(p) + 1)}[s.random.Intn(5)]
	n = min(max(n, 1), len(p), s.end-s.offset)
	for i := range n {
		p[i] = s.at(s.offset + i)
	}
	s.offset += n
	s.count.Add(int64(n))
	return n, nil
}

// reader is the Reader of a watch and what that has to deliver.
type reader struct {
	source  *source
	in      *Reader
	offset  int
	stopped bool
}

// check requires B1 to B3, R1 and R2 while nothing moves.
func checkBudget(t *testing.T, b *Budget, size int64, readers []*reader) {
	sum, waiting := b.free, 0
	for i, r := range readers {
		r.in.mu.Lock()
		chunks, held := len(r.in.chunks), r.in.share.held
		full := chunks == 0 || len(r.in.chunks[chunks-1]) == chunkBytes
		err := r.in.err
		r.in.mu.Unlock()
		sum += held
		if r.stopped {
			require.Zero(t, held, "reader %d", i)
			continue
		}
		require.Equal(t, beyondOwn(chunks), held, "reader %d has %d chunks", i, chunks)
		if err == nil { // its source has more, so it pauses
			waiting++
			require.True(t, full && chunks >= ownChunks, "reader %d, %d chunks", i, chunks)
			require.True(t, held >= b.free || b.free < chunkBytes, "%d of %d", held, b.free)
		}
	}
	require.Equal(t, size, sum)
	require.GreaterOrEqual(t, b.free, min(size, 0))
	require.Len(t, b.waiting, waiting)
}

// Whatever watches do, each gets its own bytes in their order, and the Budget is kept. Each limit
// is passed many times.
func TestBudget_Model(t *testing.T) {
	for seed := range int64(4) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewSource(seed))
			size := random.Int63n(20 * chunkBytes)
			switch seed {
			case 2:
				size = 7 * chunkBytes
			case 3:
				size = -chunkBytes // nothing but own chunks
			}
			b := &Budget{free: size}
			var readers []*reader
			start := func() {
				s := &source{
					random: rand.New(rand.NewSource(random.Int63())), seed: len(readers),
					end: random.Intn(80 * chunkBytes),
				}
				readers = append(readers, &reader{source: s, in: New(s, b)})
			}
			start()
			buffer := make([]byte, 3*chunkBytes)
			for range 300 {
				r := readers[random.Intn(len(readers))]
				switch random.Intn(20) {
				case 0:
					r.in.Stop()
					r.stopped = true
				case 1:
					if len(readers) < 12 {
						start()
					}
				default:
					length := 1 + random.Intn(len(buffer))
					if random.Intn(2) == 0 { // to the end of the chunk, or next to it
						length = max(chunkBytes-r.offset%chunkBytes-random.Intn(3), 1)
					}
					n, err := r.in.Read(buffer[:length])
					switch {
					case r.stopped:
						require.Equal(t, ErrStopped, err)
					case err == io.EOF:
						require.Equal(t, r.source.end, r.offset)
					default:
						require.NoError(t, err)
					}
					require.True(t, err != nil || n > 0)
					for i, c := range buffer[:n] {
						if want := r.source.at(r.offset + i); c != want {
							require.Equal(t, want, c, "at %d", r.offset+i)
						}
					}
					r.offset += n
				}
				synctest.Wait()
				checkBudget(t, b, size, readers)
			}
			for _, r := range readers {
				r.in.Stop()
			}
			synctest.Wait()
			require.Equal(t, size, b.free)
			require.Empty(t, b.waiting)
		})
	}
}
