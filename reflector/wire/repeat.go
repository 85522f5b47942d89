// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"io"
	"os"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"example.com/informerstack/internal/helpers/done"
)

// A request that loses its connection before the answer is sent again after repeatPause, up to
// repeats times, as client-go does. Request.Stream itself repeats only what the server answers with
// a Retry-After, after the time that it asks for, up to longestSleep.
//
// Source: rest/request.go Request
const (
	repeats      = 10
	repeatPause  = time.Second
	longestSleep = time.Minute
)

// boundSleeps limits the sleeps before the repetitions of request to longestSleep, unless
// environment variables of client-go select its own backoff.
func boundSleeps(request *rest.Request) *rest.Request {
	if os.Getenv("KUBE_CLIENT_BACKOFF_BASE") != "" {
		return request
	}
	return request.BackOffWithContext(boundedSleep{&rest.NoBackoff{}})
}

type boundedSleep struct{ rest.BackoffManagerWithContext }

// SleepWithContext sleeps for d, but not for longer than longestSleep.
func (s boundedSleep) SleepWithContext(ctx context.Context, d time.Duration) {
	s.BackoffManagerWithContext.SleepWithContext(ctx, min(d, longestSleep))
}

// send sends request and returns the body of the answer. lost reports an error after which request
// is repeated.
func send(
	ctx context.Context, request *rest.Request, lost func(error) bool,
) (io.ReadCloser, error) {
	for count := 0; ; count++ {
		body, err := request.Stream(ctx)
		if !lost(err) || count == repeats {
			return body, err
		}
		if !done.Sleep(ctx, repeatPause) {
			return nil, ctx.Err()
		}
	}
}

// isListLost reports that the connection was lost before the answer to a LIST.
func isListLost(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err)
}

// isWatchLost reports that the connection was lost before the answer to a WATCH, or that the answer
// took too long.
func isWatchLost(err error) bool { return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) }

// repetitionLimiter is the rate limiter of a WATCH: its repetitions count towards the client's
// rate, and the first request does not.
type repetitionLimiter struct {
	flowcontrol.RateLimiter
	repeated bool
}

// limitRepetitions returns the limiter for a WATCH of a client.
func limitRepetitions(client Getter) flowcontrol.RateLimiter {
	if limited, ok := client.(rest.Interface); ok {
		if limiter := limited.GetRateLimiter(); limiter != nil {
			return &repetitionLimiter{RateLimiter: limiter}
		}
	}
	return flowcontrol.NewFakeAlwaysRateLimiter()
}

// Wait waits for the client's limiter, except the first time.
func (l *repetitionLimiter) Wait(ctx context.Context) error {
	if !l.repeated {
		l.repeated = true
		return nil
	}
	return l.RateLimiter.Wait(ctx)
}
