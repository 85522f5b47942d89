// SPDX-License-Identifier: Apache-2.0

package foo_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// link carries the controller's requests for Deployments. It can be cut.
type link struct {
	mu       sync.Mutex
	restored chan struct{} // nil while the link is up
	// the next watch gets 410: the events in between are compacted
	expired bool
	open    []*cutBody
}

// config returns a copy of config for requests over the link.
func (l *link) config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return linked{l, next} })
	return config
}

// cut ends the watches. Lists and watches wait until restore.
func (l *link) cut() (restore func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	restored := make(chan struct{})
	l.restored, l.expired = restored, true
	for _, body := range l.open {
		body.end()
	}
	l.open = nil
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.restored = nil
		close(restored)
	}
}

type linked struct {
	*link
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l linked) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/deployments") {
		return l.next.RoundTrip(r)
	}
	watch := r.URL.Query().Get("watch") != ""
	expired, err := l.enter(r.Context(), watch)
	if err != nil {
		return nil, err
	}
	if expired {
		return gone(r)
	}
	response, err := l.next.RoundTrip(r)
	if err != nil || !watch {
		return response, err
	}
	body := &cutBody{ReadCloser: response.Body}
	response.Body = body
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, body)
	if l.restored != nil {
		body.end() // cut before the answer arrived
	}
	return response, nil
}

// enter waits until the link is up. It returns true for the first watch after a cut.
func (l *link) enter(ctx context.Context, watch bool) (expired bool, err error) {
	for {
		l.mu.Lock()
		restored := l.restored
		if restored == nil {
			expired = l.expired && watch
			l.expired = l.expired && !watch
		}
		l.mu.Unlock()
		if restored == nil {
			return expired, nil
		}
		select {
		case <-restored:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// gone answers like a server that has compacted the resourceVersion of the watch.
func gone(r *http.Request) (*http.Response, error) {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.Kind, status.APIVersion = "Status", "v1"
	text, err := json.Marshal(status)
	return &http.Response{
		Request: r, StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(string(text))),
	}, err
}

// cutBody is a stream that can be ended, like one that times out.
type cutBody struct {
	io.ReadCloser
	cut atomic.Bool
}

func (b *cutBody) end() {
	b.cut.Store(true)
	_ = b.Close() // its reader gets EOF
}

// Read implements io.Reader.
func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.cut.Load() {
		return 0, io.EOF
	}
	return n, err
}
