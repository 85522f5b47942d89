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
func TestSenderOf(t *testing.T) {
	const limiter = `golang.org/x/time/rate.(*Limiter).wait
k8s.io/client-go/util/flowcontrol.(*tokenBucketRateLimiter).Wait
k8s.io/client-go/rest.(*Request).tryThrottleWithInfo
k8s.io/client-go/rest.(*Request).tryThrottle
k8s.io/client-go/rest.(*Request).Do`
	for name, test := range map[string]struct{ stack, want string }{
		"a typed client": {limiter + `
k8s.io/client-go/gentype.(*Client[...]).Get
example.com/me/foo.(*Controller).reconcile
main.main.func1`, "foo.(*Controller).reconcile"},
		"a client of its own types": {limiter + `
example.com/me/pkg/generated/clientset/versioned/typed/v1.(*foos).Get
main.main.func1`, "main.main.func1"},
		"controller-runtime": {limiter + `
sigs.k8s.io/controller-runtime/pkg/client.(*typedClient).Update
main.(*Reconciler).Reconcile
sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Reconcile`,
			"main.(*Reconciler).Reconcile"},
		"an informer": {limiter + `
k8s.io/client-go/gentype.(*alsoLister[...]).List
example.com/informerstack/compat/cache.(*ListWatch).ListWithContext
example.com/informerstack/reflector.(*Reflector).Run`, "reflector.(*Reflector).Run"},
		"nothing else": {limiter, "rest.(*Request).Do"},
		"no limiter": {`k8s.io/client-go/rest.(*Request).Do
main.main.func1`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sender, waits := senderOf(strings.SplitSeq(test.stack, "\n"))
			assert.Equal(t, test.want, sender)
			assert.Equal(t, test.want != "", waits)
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
