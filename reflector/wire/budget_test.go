// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"io"
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

	"example.com/informerstack/internal/readahead"
	"example.com/informerstack/internal/tools/answers"
)

// Watches with receivers that hang leave a part of the Budget: the next one is read ahead, and a
// receiver that takes its events has all of them at once.
func TestBudget_ASlowWatchStopsNobody(t *testing.T) {
	event := answers.Events(t, answers.JSON, answers.Samples()[0])
	for _, hanging := range []int{1, 3, 20} {
		synctest.Test(t, func(t *testing.T) {
			const size = 2 << 20
			b := NewBudget(size)
			open := func() (*answers.Endless, *stream) {
				body := &answers.Endless{Data: event, Size: 4 << 10}
				return body, ReadWatch(body, newPod, Options{ReadAhead: b}).(*stream)
			}
			var bodies []*answers.Endless
			var slow []*stream
			for range hanging {
				body, w := open()
				bodies, slow = append(bodies, body), append(slow, w)
			}
			synctest.Wait()
			ahead := int64(0)
			for _, body := range bodies {
				ahead += body.Count.Load()
			}
			own := int64(ownBytes)
			const decoded = 64 << 10 // and in the decoder
			require.LessOrEqual(t, ahead, size+int64(hanging)*(own+decoded))
			body, w := open()
			synctest.Wait()
			require.GreaterOrEqual(t, body.Count.Load(), own+int64(size>>(hanging+2)))
			began := time.Now()
			for range 3 * size / len(event) {
				<-w.ResultChan()
			}
			require.Equal(t, began, time.Now())
			for _, w := range append(slow, w) {
				w.Stop()
			}
			synctest.Wait()
			free, _ := b.bytes.State()
			require.Equal(t, int64(size), free)
		})
	}
}

// While bytes wait in the connection, because others hold the Budget, a watch is not quiet.
func TestBudget_AWatchThatWaitsForItIsNotQuiet(t *testing.T) {
	event := answers.Events(t, answers.JSON, answers.Samples()[0])
	synctest.Test(t, func(t *testing.T) {
		count := 3 * ownBytes
		b := NewBudget(32 << 10)
		hanging := &answers.Endless{Data: event, Size: 4 << 10}
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
		config := answers.Config()
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
	require.Nil(t, budget(clientOf("http://a", http.DefaultClient)))
	require.Nil(t, budgetOf(&rest.RESTClient{}))
	require.Nil(t, budgetOf(struct{ Getter }{}))
	require.Same(t, readahead.Unknown, bytesOf(nil))
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
	event := answers.Events(t, answers.JSON, answers.Samples()[0])
	burst := []byte(strings.Repeat(string(event), 100))
	server := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", answers.JSON)
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
	config := answers.Config()
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
		_, waiting := b.bytes.State()
		return waiting
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
