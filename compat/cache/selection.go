// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/informer"
)

// selection is the resource, the namespace and the selectors of an informer, which the program's
// functions know. It learns them from the requests. The requests of one LIST or WATCH may differ,
// for example if its function sends one for each namespace: then the selection is not known.
type selection struct {
	mu      sync.Mutex
	last    informer.Collection // zero before the first request
	several bool                // the requests of one LIST or WATCH differed
}

// newSelection returns nil if the program does not have package devtools.
func newSelection() *selection {
	if found.Journal() == nil {
		return nil
	}
	return &selection{}
}

// learner returns a function for one LIST or WATCH, which takes the URL of each request; nil if s
// is nil.
func (s *selection) learner() func(at *url.URL) {
	if s == nil {
		return nil
	}
	var mine informer.Collection // of this LIST or WATCH; s.mu guards it
	return func(at *url.URL) {
		key, ok := selectedBy(at)
		if !ok {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.several = s.several || mine != informer.Collection{} && mine != key
		s.last, mine = key, key
	}
}

// withTrace returns ctx for requests that report their URLs to learn, even in a program that is not
// under informerstack swap. It needs HTTP/2, where the path is a field of the header.
func withTrace(ctx context.Context, learn func(at *url.URL)) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaderField: func(name string, values []string) {
			if name != ":path" || len(values) != 1 {
				return
			}
			if at, err := url.ParseRequestURI(values[0]); err == nil {
				learn(at)
			}
		},
	})
}

// known returns the selection; known is false if it is not known, and if s is nil.
func (s *selection) known() (key informer.Collection, known bool) {
	if s == nil {
		return informer.Collection{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.several {
		return informer.Collection{}, false
	}
	return s.last, s.last != informer.Collection{}
}

// maxSelectedLen bounds the path and the query of a request that a selection learns from.
const maxSelectedLen = 16 << 10

// collectionPath is the end of a collection's path. The path may begin with a prefix of the server.
var collectionPath = regexp.MustCompile(
	`/(?:api|apis/([^/]+))/([^/]+)(?:/namespaces/([^/]+))?/([^/]+)$`)

// selectedBy returns what a request selects; ok is false if it is not for a collection. The result
// shares no memory with the URL, which may contain a password.
func selectedBy(at *url.URL) (key informer.Collection, ok bool) {
	if len(at.Path)+len(at.RawQuery) > maxSelectedLen {
		return informer.Collection{}, false
	}
	path := collectionPath.FindStringSubmatch(at.Path)
	if path == nil {
		return informer.Collection{}, false
	}
	for i := range path {
		path[i] = strings.Clone(path[i])
	}
	query := at.Query()
	return informer.Collection{
		Resource: schema.GroupVersionResource{
			Group: path[1], Version: path[2], Resource: path[4]},
		Namespace:     path[3],
		LabelSelector: strings.Clone(query.Get("labelSelector")),
		FieldSelector: strings.Clone(query.Get("fieldSelector")),
	}, true
}
