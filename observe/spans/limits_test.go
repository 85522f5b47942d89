// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
)

// known is what must be remembered of a key: its causes, and the number of all causes until then.
type known struct {
	links []trace.SpanID
	total int
}

// S1 to S3 with random calls, failures and successes of many keys. Most keys fail and are never
// reconciled again; the links of the others stay right.
func TestModel_CausesOfManyKeys(t *testing.T) {
	before := maxKeys
	defer func() { maxKeys = before }()
	maxKeys = 8
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		recorder := tracetest.NewSpanRecorder()
		s := New(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)), "settings",
			func(obj any) []int { return []int{obj.(int)} })
		handler := s.Handler(informer.ResourceEventHandlerFuncs{})
		causes, total := map[int]known{}, 0
		ended := func() sdk.ReadOnlySpan {
			all := recorder.Ended()
			recorder.Reset()
			require.Len(t, all, 1)
			return all[0]
		}
		caused := func(key int, by sdk.ReadOnlySpan) {
			total++
			links := append(causes[key].links, by.SpanContext().SpanID())
			causes[key] = known{links, total}
		}
		for range 2000 {
			key := random.IntN(4 << (seed % 4))
			if random.IntN(3) == 0 {
				handler.OnAdd(key, false)
				caused(key, ended())
			} else {
				fails := error(nil)
				if random.IntN(2) == 0 {
					fails = errors.New("failed")
				}
				_, _ = s.Reconcile(func(context.Context, int) (controller.Result, error) {
					return controller.Result{}, fails
				})(t.Context(), key)
				span, want := ended(), causes[key]
				var links []trace.SpanID
				for _, link := range span.Links() {
					links = append(links, link.SpanContext.SpanID())
				}
				if len(links) > 0 || total-want.total < maxKeys/2 {
					want.links = want.links[:min(len(want.links), maxLinks)]
					require.Equal(t, want.links, links)
				}
				delete(causes, key)
				if fails != nil {
					caused(key, span)
				}
			}
			require.LessOrEqual(t, len(s.young)+len(s.old), maxKeys, "S2")
			for key := range s.young {
				require.NotContains(t, s.old, key, "S3")
			}
			for key := range causes {
				if s.young[key] == nil && s.old[key] == nil {
					require.GreaterOrEqual(t, total-causes[key].total, maxKeys/2, "S1")
					delete(causes, key)
				}
			}
		}
	}
}

// Keys that failed and are gone do not take the links of later keys.
func TestSpans_FailedKeysMakeRoom(t *testing.T) {
	s := New[int](sdk.NewTracerProvider(), "settings", func(any) []int { return nil })
	by := trace.NewSpanContext(trace.SpanContextConfig{TraceID: [16]byte{1}, SpanID: [8]byte{1}})
	for key := range 3 * maxKeys {
		s.caused(key, by)
		require.Len(t, s.take(key).links, 1, "key %d", key)
		s.caused(key, by) // it fails, and is not reconciled again
	}
	require.LessOrEqual(t, len(s.young)+len(s.old), maxKeys)
}
