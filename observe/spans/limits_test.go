// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/boundedmap"
)

// smallTable lowers maxKeys until the test ends.
func smallTable(t *testing.T) {
	before := maxKeys
	t.Cleanup(func() { maxKeys = before })
	maxKeys = 8
}

// Random calls, failures and successes of many keys, with pauses: the links of each reconcile are
// those of a naive table, which drops the key that is stale for longest when it is full.
func TestModel_CausesOfManyKeys(t *testing.T) {
	smallTable(t)
	type known struct {
		links []trace.SpanID
		last  time.Time
	}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			recorder := tracetest.NewSpanRecorder()
			s := New(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)), "settings",
				func(obj any) []int { return []int{obj.(int)} })
			handler := s.Handler(informer.ResourceEventHandlerFuncs{})
			model := map[int]known{}
			caused := func(key int) sdk.ReadOnlySpan {
				span := recorder.Ended()[0]
				recorder.Reset()
				if _, exists := model[key]; !exists && len(model) == maxKeys {
					oldest, at := 0, time.Now()
					for other, k := range model {
						if k.last.Before(at) {
							oldest, at = other, k.last
						}
					}
					if time.Since(at) < boundedmap.StaleAfter {
						return span
					}
					delete(model, oldest)
				}
				links := append(model[key].links, span.SpanContext().SpanID())
				model[key] = known{links[:min(len(links), maxLinks)], time.Now()}
				return span
			}
			for range 2000 {
				time.Sleep(time.Duration(random.Int64N(int64(5 * time.Minute))))
				key := random.IntN(4 << (seed % 4))
				if random.IntN(3) > 0 {
					handler.OnAdd(key, false)
					caused(key)
					continue
				}
				fails := error(nil)
				if random.IntN(2) == 0 {
					fails = errors.New("failed")
				}
				_, _ = s.Reconcile(func(context.Context, int) (controller.Result, error) {
					return controller.Result{}, fails
				})(t.Context(), key)
				want := model[key].links
				delete(model, key)
				span := recorder.Ended()[0]
				if fails != nil {
					caused(key)
				}
				recorder.Reset()
				var links []trace.SpanID
				for _, link := range span.Links() {
					links = append(links, link.SpanContext.SpanID())
				}
				require.Equal(t, want, links)
			}
		})
	}
}

// Keys that failed and are gone do not take the links of later keys for ever.
func TestSpans_FailedKeysMakeRoom(t *testing.T) {
	smallTable(t)
	synctest.Test(t, func(t *testing.T) {
		s := New[int](sdk.NewTracerProvider(), "settings", func(any) []int { return nil })
		by := trace.NewSpanContext(trace.SpanContextConfig{TraceID: [16]byte{1},
			SpanID: [8]byte{1}})
		for round := range 3 {
			for i := range 3 * maxKeys {
				s.caused(round*1000+i, by) // it failed, and is not reconciled again
			}
			require.Empty(t, s.take(round*1000+maxKeys).links, "no room")
			require.Equal(t, maxKeys, s.causes.Len())
			time.Sleep(boundedmap.StaleAfter)
			s.caused(-1, by)
			require.Len(t, s.take(-1).links, 1)
		}
	})
}
