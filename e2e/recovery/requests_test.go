// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// requests holds when the informers of one implementation sent a request.
type requests struct {
	mu   sync.Mutex
	sent []time.Time
}

// count makes a client of config count its requests, also those that fail.
func (r *requests) count(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.mu.Lock()
			r.sent = append(r.sent, time.Now())
			r.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return config
}

// between returns how many requests were sent from one time to another.
func (r *requests) between(from, to time.Time) (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.sent {
		if !at.Before(from) && at.Before(to) {
			count++
		}
	}
	return count
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
