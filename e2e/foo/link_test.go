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

// link is the way on which a controller hears of Deployments. It can be cut.
type link struct {
	mu     sync.Mutex
	mended chan struct{} // nil while the link is up
	// the next watch is told 410: what happened meanwhile is not known any more
	expired bool
	open    []*cutBody
}

// config returns a copy of config whose requests go over the link.
func (l *link) config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return linked{l, next} })
	return config
}

// cut ends the watches. Until mend, whoever lists or watches waits.
func (l *link) cut() (mend func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mended := make(chan struct{})
	l.mended, l.expired = mended, true
	for _, body := range l.open {
		body.end()
	}
	l.open = nil
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mended = nil
		close(mended)
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
	if l.mended != nil {
		body.end() // cut while the answer was on its way
	}
	return response, nil
}

// enter waits until the link is up. It is true for the first watch after that.
func (l *link) enter(ctx context.Context, watch bool) (expired bool, err error) {
	for {
		l.mu.Lock()
		mended := l.mended
		if mended == nil {
			expired = l.expired && watch
			l.expired = l.expired && !watch
		}
		l.mu.Unlock()
		if mended == nil {
			return expired, nil
		}
		select {
		case <-mended:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// gone answers as a server does that has forgotten the resourceVersion which the watch starts from.
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

// cutBody is a stream that ends at will, as one does whose time is over.
type cutBody struct {
	io.ReadCloser
	cut atomic.Bool
}

func (b *cutBody) end() {
	b.cut.Store(true)
	_ = b.Close() // its reader is told
}

// Read implements io.Reader.
func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.cut.Load() {
		return 0, io.EOF
	}
	return n, err
}
