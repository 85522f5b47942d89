// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/health"
)

// The leader's health check is a check like any other.
var _ health.Checker = (*leaderelection.HealthzAdaptor)(nil)

func ask(h http.Handler, target string, header ...string) (code int, text string) {
	w := serve(h, http.MethodGet, "127.0.0.1:8080", target, header...)
	return w.Code, w.Body.String()
}

func serve(
	h http.Handler, method, host, target string, header ...string,
) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, http.NoBody)
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func passes(*http.Request) error { return nil }

func fails(*http.Request) error { return errors.New("out of paper") }

// The answers are those of Kubernetes components, except that a failure has its reason.
func TestHandler_Checks(t *testing.T) {
	h := health.New()
	h.AddLive(health.NewCheck("ping", passes))
	h.AddReady(health.NewCheck("ping", passes), health.NewCheck("printer", fails),
		health.NewCheck("informer/pods", passes))
	for _, c := range []struct {
		target string
		code   int
		text   string
	}{
		{"/healthz", 200, "ok"},
		{"/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"},
		{"/readyz", 500, "[+]ping ok\n[-]printer failed: out of paper\n[+]informer/pods " +
			"ok\nreadyz check failed\n"},
		{"/readyz?exclude=printer", 200, "ok"},
		{"/readyz?exclude=printer&verbose=1", 200,
			"[+]ping ok\n[+]printer excluded: ok\n[+]informer/pods ok\nreadyz check passed\n"},
		{
			"/readyz?exclude=printer&exclude=b&exclude=a&verbose", 200,
			"[+]ping ok\n[+]printer excluded: ok\n[+]informer/pods ok\n" +
				"warn: some health checks cannot be excluded: no matches for \"b\", " +
				"\"a\"\nreadyz check passed\n",
		},
		{"/readyz/ping", 200, "ok"},
		{"/readyz/informer/pods", 200, "ok"},
		{"/readyz/printer", 500, "printer failed: out of paper\n"},
		{"/readyz/scanner", 404, "there is no check \"scanner\"\n"},
		{"/healthz/", 404, "there is no check \"\"\n"},
	} {
		code, text := ask(h, c.target)
		assert.Equal(t, c.code, code, c.target)
		assert.Equal(t, c.text, text, c.target)
	}
}

// Two informers may have one name: their checks are made, and excluded, together.
func TestHandler_ChecksWithOneName(t *testing.T) {
	h := health.New()
	h.AddReady(health.NewCheck("pods", passes), health.NewCheck("pods", fails))
	code, text := ask(h, "/readyz/pods")
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Equal(t, "pods failed: out of paper\n", text)
	code, text = ask(h, "/readyz?exclude=pods&verbose")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]pods excluded: ok\n[+]pods excluded: ok\nreadyz check passed\n", text)
}

// A check that panics is a failed check; the endpoint answers, and the other checks are made.
func TestHandler_ACheckPanics(t *testing.T) {
	h := health.New()
	h.AddReady(health.NewCheck("ping", passes),
		health.NewCheck("panics", func(*http.Request) error { panic("no\npaper") }),
		health.NewCheck("nil error", func(*http.Request) error { return (*nilError)(nil) }))
	code, text := ask(h, "/readyz")
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Equal(t, "[+]ping ok\n[-]panics failed: panic: no\\npaper\n[-]nil error failed: <nil>\n"+
		"readyz check failed\n", text)
	code, text = ask(h, "/readyz/panics")
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Equal(t, "panics failed: panic: no\\npaper\n", text)
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// A check that blocks delays only the answer to its own request, and its context ends when the
// client disconnects.
func TestHandler_ACheckBlocks(t *testing.T) {
	h := health.New()
	entered := make(chan struct{})
	h.AddReady(health.NewCheck("slow", func(r *http.Request) error {
		close(entered)
		<-r.Context().Done()
		return r.Context().Err()
	}))
	server := httptest.NewServer(h)
	defer server.Close()
	ctx, giveUp := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/readyz", nil)
		_, err := http.DefaultClient.Do(r)
		answered <- err
	}()
	<-entered
	h.AddReady(health.NewCheck("ping", passes))
	for _, target := range []string{"/healthz", "/readyz/ping", "/debug/informers"} {
		code, _ := ask(h, target)
		assert.Equal(t, http.StatusOK, code, target)
	}
	giveUp()
	assert.ErrorIs(t, <-answered, context.Canceled)
}

func TestHandler_WithoutChecksIsAliveAndReady(t *testing.T) {
	for _, target := range []string{"/healthz", "/readyz"} {
		code, text := ask(health.New(), target)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "ok", text)
	}
}

// The endpoints are read-only.
func TestHandler_RefusesWrites(t *testing.T) {
	for _, target := range []string{"/healthz", "/readyz", "/readyz/ping", "/debug/informers"} {
		code := func(method string) int {
			return serve(health.New(), method, "localhost", target).Code
		}
		assert.Equal(t, http.StatusMethodNotAllowed, code(http.MethodPost), target)
		assert.Equal(t, http.StatusMethodNotAllowed, code(http.MethodDelete), target)
		assert.Less(t, code(http.MethodHead), 405, target)
	}
	code, _ := ask(health.New(), "/debug/pprof")
	assert.Equal(t, http.StatusNotFound, code)
}

func TestHandler_ServesMore(t *testing.T) {
	h := health.New()
	h.Handle("GET /metrics", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("numbers"))
	}))
	code, text := ask(h, "/metrics")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "numbers", text)
	assert.Panics(t, func() { h.Handle("GET /metrics", http.NotFoundHandler()) })
}
