// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/informerstack/informer"
)

// Checker is one thing to check. It is what Kubernetes components call a HealthChecker, and what leaderelection's
// HealthzAdaptor is.
type Checker interface {
	// Name is the check's name in answers and in its path.
	Name() string
	// Check returns what is wrong, or nil. It must be quick and safe for concurrent use.
	Check(r *http.Request) error
}

// NewCheck returns a Checker that calls check.
func NewCheck(name string, check func(r *http.Request) error) Checker { return namedCheck{name, check} }

type namedCheck struct {
	name  string
	check func(r *http.Request) error
}

func (c namedCheck) Name() string                { return c.name }
func (c namedCheck) Check(r *http.Request) error { return c.check(r) }

// Fresh checks that an informer runs, has synced, and has heard from its server within d: see informer.Health.Fresh, which
// also says which d makes sense.
func Fresh(name string, d time.Duration, subject interface{ Health() informer.Health }) Checker {
	return NewCheck(name, func(*http.Request) error { return subject.Health().Fresh(time.Now(), d) })
}

// serveAll makes all checks but those that are excluded. The answer is "ok"; with ?verbose, or if a check fails, it is a line
// for each check.
func serveAll(endpoint string, checks func() []Checker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		excluded := map[string]bool{}
		for _, name := range r.URL.Query()["exclude"] {
			excluded[name] = true
		}
		var lines strings.Builder
		failed := false
		for _, check := range checks() {
			if excluded[check.Name()] {
				delete(excluded, check.Name())
				fmt.Fprintf(&lines, "[+]%s excluded: ok\n", check.Name())
				continue
			}
			if err := check.Check(r); err != nil {
				failed = true
				fmt.Fprintf(&lines, "[-]%s failed: %v\n", check.Name(), err)
				continue
			}
			fmt.Fprintf(&lines, "[+]%s ok\n", check.Name())
		}
		if len(excluded) > 0 {
			fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %s\n", quoted(r.URL.Query()["exclude"], excluded))
		}
		_, verbose := r.URL.Query()["verbose"]
		switch {
		case failed:
			answer(w, http.StatusInternalServerError, lines.String()+endpoint+" check failed\n")
		case verbose:
			answer(w, http.StatusOK, lines.String()+endpoint+" check passed\n")
		default:
			answer(w, http.StatusOK, "ok")
		}
	}
}

// quoted lists those of names that are in wanted, in their order.
func quoted(names []string, wanted map[string]bool) string {
	var quoted []string
	for _, name := range names {
		if wanted[name] {
			quoted = append(quoted, fmt.Sprintf("%q", name))
		}
	}
	return strings.Join(quoted, ", ")
}

// serveOne makes the check that the path names.
func serveOne(checks func() []Checker) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		for _, check := range checks() {
			if check.Name() != name {
				continue
			}
			if err := check.Check(r); err != nil {
				answer(w, http.StatusInternalServerError, fmt.Sprintf("%s failed: %v\n", name, err))
				return
			}
			answer(w, http.StatusOK, "ok")
			return
		}
		answer(w, http.StatusNotFound, fmt.Sprintf("there is no check %q\n", name))
	}
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", cmp.Or(w.Header().Get("Content-Type"), "text/plain; charset=utf-8"))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text)) // who asked may be gone
}
