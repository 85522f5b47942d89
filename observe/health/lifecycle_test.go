// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/controller"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/store"
)

// The page and the checks are read while informers and controllers start, gain and lose handlers,
// stop, and are removed.
func TestPage_WhileEverythingStartsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := health.New()
		done := make(chan struct{})
		var readers sync.WaitGroup
		for range 2 {
			readers.Go(func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(time.Millisecond):
					}
					readOnce(t, h)
				}
			})
		}
		var lives sync.WaitGroup
		for range 4 {
			lives.Go(func() {
				for range 5 {
					live(t, h)
				}
			})
		}
		lives.Wait()
		close(done)
		readers.Wait()
		page := h.Page()
		require.Empty(t, page.Informers)
		require.Empty(t, page.Controllers)
		code, text := ask(h, "/readyz?verbose")
		require.Equal(t, 200, code)
		require.Equal(t, "readyz check passed\n", text)
	})
}

// live starts and stops an informer and its controller. All of them have the same name.
func live(t *testing.T, h *health.Handler) {
	maps := newMaps(false, "configmaps", 3*time.Millisecond)
	c := controller.New("maps", func(ctx context.Context, key string) (controller.Result, error) {
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
		return controller.Result{RequeueAfter: time.Millisecond}, nil
	}, controller.Options[string]{WaitFor: []controller.Synced{maps.HasSyncedChecker()}})
	defer h.AddInformer("maps", maps)()
	defer health.AddController(h, c)()
	defer h.AddReady(health.Fresh("maps", time.Minute, maps))()
	readOnce(t, h)

	stop := testserver.Run(t.Context(), maps.Run, func(ctx context.Context) { _ = c.Run(ctx) })
	for range 3 {
		handle, err := maps.AddEventHandler(c.Handler(store.DeletionHandlingMetaNamespaceKeyFunc))
		require.NoError(t, err)
		time.Sleep(4 * time.Millisecond)
		require.NoError(t, maps.RemoveEventHandler(handle))
	}
	stop()
	readOnce(t, h)
}

// readOnce reads everything and checks that it agrees with itself.
func readOnce(t *testing.T, h *health.Handler) {
	_, text := ask(h, "/readyz?verbose")
	requirePrintable(t, text, 1<<20)
	_, text = ask(h, "/debug/informers?format=json")
	var page health.Page
	require.NoError(t, json.Unmarshal([]byte(text), &page))
	requirePrintable(t, page.String(), 1<<20)
	for _, i := range page.Informers {
		require.True(t, i.Started || !i.Stopped)
		for _, handler := range i.Handlers {
			require.GreaterOrEqual(t, handler.Pending, 0)
			require.GreaterOrEqual(t, handler.OldestPendingSeconds, 0.0)
			require.GreaterOrEqual(t, handler.Calls, 0)
		}
	}
	for _, c := range page.Controllers {
		require.Equal(t, c.Running.Total, len(c.Running.Items))
		if c.Phase == controller.PhaseStopped {
			require.Zero(t, c.Running.Total)
		}
	}
}
