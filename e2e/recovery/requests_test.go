// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// requests holds when the informers of one implementation sent a request.
type requests struct {
	resource string // of the informers that are not sick
	host     string // of their server

	mu   sync.Mutex
	sent []time.Time
	sick []time.Time // of sick informers
}

// count makes a client of config count its requests, also those that fail.
func (r *requests) count(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.mu.Lock()
			kept := &r.sick
			if "https://"+request.URL.Host == r.host &&
				strings.HasSuffix(request.URL.Path, "/"+r.resource) {
				kept = &r.sent
			}
			*kept = append(*kept, time.Now())
			r.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return config
}

// between returns how many requests were sent from one time to another, and how many sick informers
// sent.
func (r *requests) between(from, to time.Time) (count, sick int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(within(r.sent, from, to)), len(within(r.sick, from, to))
}

func within(times []time.Time, from, to time.Time) (kept []time.Time) {
	for _, at := range times {
		if !at.Before(from) && at.Before(to) {
			kept = append(kept, at)
		}
	}
	return kept
}

// peakWidth is the time in which the most requests count as a peak.
const peakWidth = 100 * time.Millisecond

// peak returns how many times the mean the most requests in peakWidth are, from one time to
// another.
func (r *requests) peak(from, to time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return peak(within(r.sent, from, to), to.Sub(from))
}

func peak(times []time.Time, length time.Duration) float64 {
	if len(times) == 0 {
		return 0
	}
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	most := 0
	for i, first := 0, 0; i < len(times); i++ {
		for times[i].Sub(times[first]) >= peakWidth {
			first++
		}
		most = max(most, i-first+1)
	}
	return float64(most) / (float64(len(times)) * float64(peakWidth) / float64(length))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
