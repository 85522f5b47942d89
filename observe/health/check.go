// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/printable"
)

// Checker is one health check. It has the methods of the HealthChecker of Kubernetes components;
// leaderelection's HealthzAdaptor is one.
type Checker interface {
	// Name is the check's name in answers and in its path. Checks with the same name are made, and
	// excluded, together.
	Name() string
	// Check returns an error if the check fails. It must be quick and safe for concurrent use. The
	// endpoint does not answer before Check returns, so it should return when r's context is done.
	// A panic counts as a failure.
	Check(r *http.Request) error
}

// NewCheck returns a Checker that calls check.
func NewCheck(name string, check func(r *http.Request) error) Checker {
	return namedCheck{name, check}
}

type namedCheck struct {
	name  string
	check func(r *http.Request) error
}

func (c namedCheck) Name() string                { return c.name }
func (c namedCheck) Check(r *http.Request) error { return c.check(r) }

// Fresh checks that an informer is fresh within d: see informer.Health.Fresh, also for the choice
// of d.
func Fresh(name string, d time.Duration, subject interface{ Health() informer.Health }) Checker {
	return NewCheck(name,
		func(*http.Request) error { return subject.Health().Fresh(time.Now(), d) })
}

// serveAll makes all checks that are not excluded. It answers "ok", or one line per check if the
// request says ?verbose or a check fails.
func (h *Handler) serveAll(endpoint string, checks func() []*Checker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		excluded := r.URL.Query()["exclude"]
		unknown := slices.Clone(excluded)
		var lines strings.Builder
		failed := false
		for _, c := range checks() {
			check := *c
			name := check.Name()
			if slices.Contains(excluded, name) {
				unknown = slices.DeleteFunc(unknown, func(n string) bool { return n == name })
				fmt.Fprintf(&lines, "[+]%s excluded: ok\n", printable.Text(name))
				continue
			}
			if err := run(check, r); err != nil {
				failed = true
				fmt.Fprintf(&lines, "[-]%s failed: %s\n", printable.Text(name),
					printable.Line(errorText(err)))
				continue
			}
			fmt.Fprintf(&lines, "[+]%s ok\n", printable.Text(name))
		}
		if len(unknown) > 0 {
			fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %s\n",
				quoted(unknown))
		}
		details := lines.String()
		if refusal := h.refusal(r); refusal != "" {
			details = refusal
		}
		_, verbose := r.URL.Query()["verbose"]
		switch {
		case failed:
			answer(w, http.StatusInternalServerError, details+endpoint+" check failed\n")
		case verbose:
			answer(w, http.StatusOK, details+endpoint+" check passed\n")
		default:
			answer(w, http.StatusOK, "ok")
		}
	}
}

// quoted joins the quoted names.
func quoted(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, fmt.Sprintf("%q", printable.Short(name)))
	}
	return strings.Join(quoted, ", ")
}

// serveOne makes the checks that the path names.
func (h *Handler) serveOne(checks func() []*Checker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		var failures strings.Builder
		found := false
		for _, check := range checks() {
			if (*check).Name() != name {
				continue
			}
			found = true
			if err := run(*check, r); err != nil {
				fmt.Fprintf(&failures, "%s failed: %s\n", printable.Text(name),
					printable.Line(errorText(err)))
			}
		}
		switch refusal := h.refusal(r); {
		case !found:
			answer(w, http.StatusNotFound,
				fmt.Sprintf("there is no check %q\n", printable.Short(name)))
		case failures.Len() == 0:
			answer(w, http.StatusOK, "ok")
		case refusal != "":
			answer(w, http.StatusInternalServerError, refusal)
		default:
			answer(w, http.StatusInternalServerError, failures.String())
		}
	}
}

// run makes a check. A panic is reported as an error.
func run(check Checker, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			klog.FromContext(r.Context()).Error(err, "Health check panicked",
				"check", check.Name(), "stack", string(debug.Stack()))
		}
	}()
	return check.Check(r)
}

func answer(w http.ResponseWriter, code int, text string) {
	header := w.Header()
	header.Set("Content-Type", cmp.Or(header.Get("Content-Type"), "text/plain; charset=utf-8"))
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // the client may have disconnected
}
