// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// The function that sent a request is the first one that is not in a library.
func TestThrottledBy(t *testing.T) {
	const limiter = `
#	0x1	golang.org/x/time/rate.(*Limiter).wait+0x3f4	/rate/rate.go:285
#	0x2	k8s.io/client-go/util/flowcontrol.(*tokenBucketRateLimiter).Wait+0x2f	/throttle.go:131
#	0x3	k8s.io/client-go/rest.(*Request).tryThrottleWithInfo+0xd3	/request.go:673
#	0x4	k8s.io/client-go/rest.(*Request).tryThrottle+0x4f	/request.go:699
#	0x5	k8s.io/client-go/rest.(*Request).Do+0xa6	/request.go:1099
`
	for name, test := range map[string]struct{ stack, want string }{
		"a typed client": {`
#	0x6	k8s.io/client-go/gentype.(*Client[...]).Get+0x1b	/gentype.go:105
#	0x7	example.com/me/foo.(*Controller).reconcile+0x1b	/c.go:9
#	0x8	main.main.func1+0x1b	/c.go:9`, "foo.(*Controller).reconcile"},
		"a client of its own types": {`
#	0x6	example.com/me/pkg/generated/clientset/versioned/typed/v1.(*foos).Get+0x1b	/foo.go:7
#	0x7	main.main.func1+0x1b	/c.go:9`, "main.main.func1"},
		"controller-runtime": {`
#	0x6	sigs.k8s.io/controller-runtime/pkg/client.(*typedClient).Update+0x1b	/typed.go:7
#	0x7	main.(*Reconciler).Reconcile+0x1b	/c.go:9
#	0x8	sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Reconcile+0x1b	/x`,
			"main.(*Reconciler).Reconcile"},
		"an informer": {`
#	0x6	k8s.io/client-go/gentype.(*alsoLister[...]).List+0x1b	/gentype.go:105
#	0x7	example.com/informerstack/compat/cache.(*ListWatch).ListWithContext+0x1b	/c.go:9
#	0x8	example.com/informerstack/reflector.(*Reflector).Run+0x1b	/c.go:9`,
			"reflector.(*Reflector).Run"},
		"nothing else": {"", "rest.(*Request).Do"},
	} {
		t.Run(name, func(t *testing.T) {
			n, sender := throttledBy("3 @ 0x1 0x2" + limiter + strings.TrimSpace(test.stack))
			assert.Equal(t, 3, n)
			assert.Equal(t, test.want, sender)
		})
	}
}

// A request that waits in the limiter of its client is seen, and is forgotten after a minute.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := kubernetes.NewForConfigOrDie(&rest.Config{Host: "127.0.0.1:1",
			RateLimiter: patient{flowcontrol.NewFakeNeverRateLimiter()},
			Transport:   http.NewFileTransport(nil)})
		l := looks{}
		assert.Nil(t, l.take())
		ctx, cancel := context.WithCancel(t.Context())
		var sending sync.WaitGroup
		for range 3 {
			sending.Go(func() { sendTwice(ctx, client) })
		}
		sending.Go(func() { sendOnce(ctx, client) })
		synctest.Wait()
		assert.Nil(t, l.take(), "it is too early for a look")
		start := time.Now()
		for range 2 * maxLooks {
			time.Sleep(lookPeriod)
			got := l.take()
			require.NotNil(t, got)
			assert.Equal(t, 4, got.Waiting)
			assert.Equal(t, "journal.sendTwice", got.Function)
			since := time.Since(got.Since)
			assert.Equal(t, min(lookTime-lookPeriod, time.Since(start)), since)
			assert.Equal(t, int(since/lookPeriod)+1, got.Looks)
		}
		cancel()
		sending.Wait()
		time.Sleep(lookTime)
		assert.NotNil(t, l.take())
		time.Sleep(lookPeriod)
		assert.Nil(t, l.take())
	})
}

// Looks take at most one percent of the time, however many goroutines there are.
func TestLooks_TakeAPartOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		assert.Equal(t, time.Now().Add(time.Second), nextLook(time.Now()))
		assert.Equal(t, time.Now().Add(99*time.Second), nextLook(time.Now().Add(-time.Second)))
	})
}

// patient is a limiter that waits until ctx is done.
type patient struct{ flowcontrol.RateLimiter }

func (patient) Wait(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func sendTwice(ctx context.Context, client kubernetes.Interface) {
	for range 2 {
		_, _ = client.CoreV1().Pods("a").Get(ctx, "b", metav1.GetOptions{})
	}
}

func sendOnce(ctx context.Context, client kubernetes.Interface) {
	_, _ = client.CoreV1().Pods("a").Get(ctx, "b", metav1.GetOptions{})
}

// One look at the goroutines of a program. A page takes one every two seconds.
func BenchmarkLook(b *testing.B) {
	for name, n := range map[string]int{"goroutines=100": 100, "goroutines=10000": 10_000} {
		b.Run(name, func(b *testing.B) {
			ended := make(chan struct{})
			var running sync.WaitGroup
			defer running.Wait()
			defer close(ended)
			for range n {
				running.Go(func() { <-ended })
			}
			for b.Loop() {
				throttled()
			}
		})
	}
}
