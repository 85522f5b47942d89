// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"example.com/informerstack/e2e/fixture"
)

// link is a client's network, which counts the requests that are answered.
type link struct {
	*fixture.Link
	mu       sync.Mutex
	requests map[string]int // by kind: LIST, WATCH, or STREAM, a watch with the initial events
}

func newLink() *link { return &link{Link: fixture.NewLink(), requests: map[string]int{}} }

// config returns a copy of config for connections over the link.
func (l *link) config(config *rest.Config) *rest.Config {
	config = l.Config(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{l, next} })
	return config
}

// asked returns how many requests of each kind were answered.
func (l *link) asked() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.requests)
}

type counted struct {
	link *link
	next http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	kind := "LIST"
	if query := r.URL.Query(); query.Get("sendInitialEvents") == "true" {
		kind = "STREAM"
	} else if query.Get("watch") != "" {
		kind = "WATCH"
	}
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.link.requests[kind]++
	return response, nil
}
