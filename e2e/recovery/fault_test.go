// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/e2e/fixture"
)

// fault is one kind of failure. strike returns when the failure is over, with the time when the
// server began to answer the informers again.
type fault struct {
	name   string
	strike func(w *world) (answered time.Time)
	// blind: a client is not shown how old the events are that it receives, because they were long
	// on their way, or because the server itself has not heard from etcd. Health is not checked.
	blind bool
	// asks: the watches are open, but the stores are old, so Health asks the server for its newest
	// version.
	asks bool
	// fleet: the peak of the requests is measured, from fleetWarm to this time after the beginning.
	fleet time.Duration
}

// sequences run at the same time, each with a server and informers of its own. Server faults, which
// make informers back off, alternate with network faults, which show what the backoff costs later.
var sequences = map[string][]fault{
	"A": {
		{name: "API server killed, started after 10 s", strike: killFor(10 * time.Second)},
		{name: "connections reset", strike: reset},
		{name: "RBAC revoked for 20 s", strike: revokeFor(20 * time.Second)},
		{name: "connections lost, new ones work after 50 s", strike: loseFor(50 * time.Second)},
	},
	"B": {
		{name: "API server killed, started after 40 s", strike: killFor(40 * time.Second)},
		{name: "connections stalled for 60 s", strike: stallFor(60 * time.Second)},
		{name: "429 for 20 s", strike: throttleFor(20 * time.Second)},
	},
}

// killFor kills the API server, and starts it again after d.
func killFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.cluster.KillAPIServer()
		w.wait(d)
		started := make(chan error)
		go func() { started <- w.cluster.StartAPIServer(w.t.Context()) }()
		answered := w.answers(isNil)
		require.NoError(w.t, <-started)
		return answered
	}
}

// revokeFor revokes the informers' permission to list and watch. It also cuts their connections,
// because the server does not end a watch when its user loses the permission.
func revokeFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.deny()
		w.answers(apierrors.IsForbidden)
		w.eachLink((*fixture.Link).Reset)
		w.wait(d)
		w.grant()
		return w.answers(isNil)
	}
}

// throttleFor puts a gateway in the server's place that answers every request with 429. (API
// Priority and Fairness cannot do that: it admits one request at a time even if the limit is 0.)
func throttleFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		certificate, err := w.cluster.Certificate()
		require.NoError(w.t, err)
		gateway := httptest.NewUnstartedServer(http.HandlerFunc(tooManyRequests))
		gateway.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		gateway.EnableHTTP2 = true
		gateway.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are reset in the middle
		gateway.StartTLS()
		defer gateway.Close()
		w.eachLink(func(l *fixture.Link) { l.Redirect(gateway.Listener.Addr().String()) })
		w.wait(d)
		w.eachLink(func(l *fixture.Link) { l.Redirect("") })
		return time.Now()
	}
}

// tooManyRequests answers as an overloaded API server does.
func tooManyRequests(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
}

func reset(w *world) time.Time {
	answered := time.Now()
	w.eachLink((*fixture.Link).Reset)
	return answered
}

var (
	// resetFor resets every connection, the open ones and those that are opened within d.
	resetFor = onLinks((*fixture.Link).BreakAll)
	// stallFor holds back all bytes. After 45 s of silence an HTTP/2 client closes the connection.
	stallFor = onLinks((*fixture.Link).Stall)
	// loseFor loses the open connections, which HTTP/2 clients notice after 45 s, and holds back
	// new ones.
	loseFor = onLinks((*fixture.Link).Lose)
)

// onLinks returns a fault of every link, which ends after d.
func onLinks(begin func(*fixture.Link)) func(d time.Duration) func(*world) time.Time {
	return func(d time.Duration) func(*world) time.Time {
		return func(w *world) time.Time {
			w.eachLink(begin)
			w.wait(d)
			w.eachLink((*fixture.Link).Release)
			return time.Now()
		}
	}
}

func isNil(err error) bool { return err == nil }
