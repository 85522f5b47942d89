// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

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

// reader is a watch's ahead and what it has to deliver.
type reader struct {
	source  *source
	in      *ahead
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
			b := NewBudget(size)
			var readers []*reader
			start := func() {
				s := &source{
					random: rand.New(rand.NewSource(random.Int63())), seed: len(readers),
					end: random.Intn(80 * chunkBytes),
				}
				readers = append(readers, &reader{source: s, in: readAhead(s, b)})
			}
			start()
			buffer := make([]byte, 3*chunkBytes)
			for range 300 {
				r := readers[random.Intn(len(readers))]
				switch random.Intn(20) {
				case 0:
					r.in.stop()
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
						require.Equal(t, errStopped, err)
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
				r.in.stop()
			}
			synctest.Wait()
			require.Equal(t, size, b.free)
			require.Empty(t, b.waiting)
		})
	}
}

// Watches with receivers that hang leave a part of the Budget: the next one is read ahead, and a
// receiver that takes its events has all of them at once.
func TestBudget_ASlowWatchStopsNobody(t *testing.T) {
	event := encodeEvents(t, jsonStream, contents()[0])
	for _, hanging := range []int{1, 3, 20} {
		synctest.Test(t, func(t *testing.T) {
			const size = 2 << 20
			b := NewBudget(size)
			open := func() (*endless, *stream) {
				body := &endless{data: event, size: 4 << 10, closed: make(chan struct{})}
				return body, ReadWatch(body, newPod, Options{ReadAhead: b}).(*stream)
			}
			var bodies []*endless
			var slow []*stream
			for range hanging {
				body, w := open()
				bodies, slow = append(bodies, body), append(slow, w)
			}
			synctest.Wait()
			ahead := int64(0)
			for _, body := range bodies {
				ahead += body.read.Load()
			}
			own := int64(ownChunks * chunkBytes)
			const decoded = 64 << 10 // and in the decoder
			require.LessOrEqual(t, ahead, size+int64(hanging)*(own+decoded))
			body, w := open()
			synctest.Wait()
			require.GreaterOrEqual(t, body.read.Load(), own+int64(size>>(hanging+2)))
			began := time.Now()
			for range 3 * size / len(event) {
				<-w.ResultChan()
			}
			require.Equal(t, began, time.Now())
			for _, w := range append(slow, w) {
				w.Stop()
			}
			synctest.Wait()
			require.Equal(t, int64(size), b.free)
		})
	}
}

// While bytes wait in the connection, because others hold the Budget, a watch is not quiet.
func TestBudget_AWatchThatWaitsForItIsNotQuiet(t *testing.T) {
	event := encodeEvents(t, jsonStream, contents()[0])
	synctest.Test(t, func(t *testing.T) {
		count := 3 * ownChunks * chunkBytes
		b := NewBudget(2 * chunkBytes)
		hanging := &endless{data: event, size: 4 << 10, closed: make(chan struct{})}
		defer ReadWatch(hanging, newPod, Options{ReadAhead: b}).Stop()
		synctest.Wait()
		body, server := io.Pipe()
		w := ReadWatch(body, newPod, Options{ReadAhead: b}).(*stream)
		defer w.Stop()
		events, sent := count/len(event), atomic.Int64{}
		go func() {
			for range events {
				_, _ = server.Write(event)
				sent.Add(1)
			}
		}()
		paused := 0
		for taken := range events {
			time.Sleep(time.Minute)
			synctest.Wait()
			if sent.Load() < int64(events) {
				paused++
			}
			_, _, quiet := w.Quiet()
			require.Equal(t, taken >= events-eventBuffer, quiet, "%d of %d", taken, events)
			<-w.ResultChan()
		}
		require.Greater(t, paused, events/2, "otherwise the test shows nothing")
	})
}

// The watches of one client and server share a Budget, and it is forgotten with the client.
func TestBudget_OfAClientAndItsServer(t *testing.T) {
	clientOf := func(host string, c *http.Client) *rest.RESTClient {
		config := restConfig(t)
		config.Host = host
		client, err := rest.RESTClientForConfigAndClient(config, c)
		require.NoError(t, err)
		return client
	}
	c := &http.Client{Transport: http.DefaultTransport}
	budget := func(client *rest.RESTClient) *Budget {
		return NewListWatch(client, "pods", "", newPod, Options{}).options.ReadAhead
	}
	a := budget(clientOf("http://a", c))
	require.Same(t, a, budget(clientOf("http://a", c)))
	require.NotSame(t, a, budget(clientOf("http://b", c)))
	require.NotSame(t, a, budget(clientOf("http://a", &http.Client{})))
	require.Same(t, unknownClients, budget(clientOf("http://a", http.DefaultClient)))
	require.Same(t, unknownClients, budgetOf(&rest.RESTClient{}))
	require.Same(t, unknownClients, budgetOf(struct{ Getter }{}))
	own := NewBudget(5)
	lw := NewListWatch(clientOf("http://a", c), "pods", "", newPod, Options{ReadAhead: own})
	require.Same(t, own, lw.options.ReadAhead)

	known := func() (count int) {
		budgets.Range(func(any, any) bool {
			count++
			return true
		})
		return count
	}
	before := known()
	for range 100 {
		budget(clientOf("http://c", &http.Client{}))
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return known() <= before+1
	}, 10*time.Second, time.Millisecond)
	runtime.KeepAlive(c)
}

// Over HTTP/2 all watches share one connection. Those that are not read leave it to the others.
func TestBudget_StalledStreamsOfOneConnection(t *testing.T) {
	const stalled = 20
	event := encodeEvents(t, jsonStream, contents()[0])
	burst := []byte(strings.Repeat(string(event), 100))
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", jsonStream)
			if !strings.Contains(r.URL.Path, "stalled") {
				_, _ = w.Write(event)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			for r.Context().Err() == nil { // as fast as the client takes it
				if _, err := w.Write(burst); err != nil {
					return
				}
			}
		}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config := restConfig(t)
	config.Host = server.URL
	client, err := rest.RESTClientForConfigAndClient(config, server.Client())
	require.NoError(t, err)
	b := NewBudget(1 << 20)
	open := func(namespace string) *stream {
		lw := NewListWatch(client, "pods", namespace, newPod, Options{ReadAhead: b})
		w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return w.(*stream)
	}
	for i := range stalled {
		w := open(fmt.Sprint("stalled-", i))
		defer w.Stop()
		<-w.ResultChan()
	}
	pausing := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.waiting)
	}
	require.Eventually(t, func() bool { return pausing() == stalled }, 20*time.Second,
		time.Millisecond)
	for i := range 10 {
		began := time.Now()
		w := open(fmt.Sprint("live-", i))
		select {
		case <-w.ResultChan():
		case <-time.After(20 * time.Second):
			require.Fail(t, "no event")
		}
		t.Log(time.Since(began))
		w.Stop()
	}
	require.Equal(t, stalled, pausing())
}
