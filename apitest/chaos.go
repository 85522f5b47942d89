// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Rates are the probabilities, from 0 to 1, of each failure of a request. Their sum over a kind of
// request should not exceed 1.
type Rates struct {
	Match Match // the requests that may fail; the zero value means all

	// For every request.
	TooManyRequests float64 // 429, with Retry-After: 1
	ServerError     float64 // 500
	Unavailable     float64 // 503
	Drop            float64 // the connection closes after the first line of the answer

	// For watches, after a few events.
	Close  float64
	Cut    float64
	Stall  float64
	Expire float64 // 410 as an ERROR event

	MaxDelay time.Duration // each request is delayed by a random time up to this
}

// Random makes requests fail at random until remove is called. With the same seed, the nth request
// of a verb and resource fails in the same way. A second call replaces the first.
func (f *Faults) Random(seed uint64, rates Rates) (remove func()) {
	c := &chaos{seed: seed, rates: rates, seen: map[string]uint64{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chaos = c
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.chaos == c {
			f.chaos = nil
		}
	}
}

type chaos struct {
	seed  uint64
	rates Rates

	mu   sync.Mutex
	seen map[string]uint64 // requests so far, by verb and resource
}

// next returns the source of the decisions about one request. It depends only on the seed, the
// verb, the resource and the number of earlier requests with them.
func (c *chaos) next(r Request) *rand.Rand {
	kind := r.Verb + " " + r.Resource + "." + r.Group
	c.mu.Lock()
	c.seen[kind]++
	n := c.seen[kind]
	c.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind)) // writing to a hash never fails
	return rand.New(rand.NewPCG(c.seed, h.Sum64()+n))
}

// maxEventsBeforeFault bounds how many events a watch delivers before its random fault.
const maxEventsBeforeFault = 8

func (c *chaos) roll(r Request) Fault {
	if !c.rates.Match.matches(r) {
		return Fault{}
	}
	rng := c.next(r)
	var f Fault
	if c.rates.MaxDelay > 0 {
		f.Delay = time.Duration(rng.Int64N(int64(c.rates.MaxDelay) + 1))
	}
	f.AfterEvents = rng.IntN(maxEventsBeforeFault)
	dice := rng.Float64()
	falls := func(rate float64) bool {
		dice -= rate
		return dice < 0
	}
	switch {
	case falls(c.rates.TooManyRequests):
		f.Err = apierrors.NewTooManyRequests("too many requests, please try again later", 1)
	case falls(c.rates.ServerError):
		f.Err = apierrors.NewInternalError(errRandom)
	case falls(c.rates.Unavailable):
		f.Err = apierrors.NewServiceUnavailable(
			"the server is currently unable to handle the request")
	case falls(c.rates.Drop):
		f.Drop = true
	case r.Verb != "watch":
	case falls(c.rates.Close):
		f.Stream = CloseStream
	case falls(c.rates.Cut):
		f.Stream = CutStream
	case falls(c.rates.Stall):
		f.Stream = StallStream
	case falls(c.rates.Expire):
		f.Stream = ErrorStream
	}
	return f
}

var errRandom = errors.New("a random fault")
