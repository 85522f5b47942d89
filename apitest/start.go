// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/helpers/manifests"
)

// shownRequests bounds the requests in the log of a test that fails.
const shownRequests = 100

// Start starts a server for a test, creates the objects, as Create does, and closes the server when
// the test ends. If the test fails, its log has the last requests.
//
// The server is reached with Config, within the process only: so a test may call Start in a
// synctest bubble and outside. With options.Address, it listens there, for other programs too, and
// cannot be in a bubble. Without options.Scheme, it knows the types of client-go.
func Start(t testing.TB, options Options, objects ...Object) *Server {
	t.Helper()
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	s := NewServer(options)
	start := s.StartPipe
	if options.Address != "" {
		start = s.Start
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Log(s.lastRequests())
		}
	})
	for _, obj := range objects {
		if err := s.Create(obj); err != nil {
			t.Fatalf("create %T %s: %v", obj, obj.GetName(), err)
		}
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// lastRequests describes what clients have asked for, and how it was answered.
func (s *Server) lastRequests() string {
	requests := s.Requests(Match{})
	text := fmt.Sprintf("%d requests:", len(requests))
	if len(requests) > shownRequests {
		text = fmt.Sprintf("the last %d of %s", shownRequests, text)
		requests = requests[len(requests)-shownRequests:]
	}
	for _, r := range requests {
		text += "\n  " + r.Time.Format("15:04:05.000 ") + r.String()
	}
	return text
}

// Config returns the configuration of a client of the server, without a client-side rate limit.
// Start or StartPipe must have been called.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: s.URL, Transport: s.Transport(), QPS: -1}
}

// Load creates the CustomResourceDefinitions in crds and files, and then the other objects in
// files, in their order, as Create does. Both name YAML or JSON files, or folders of them; the
// other objects in crds are left out. An object without a namespace is created in default. An error
// names the file and the object; the objects before it have been created.
func (s *Server) Load(crds, files []string) error {
	definitions, objects, err := manifests.Read(crds, files)
	if err != nil {
		return fmt.Errorf("load objects: %w", err)
	}
	for _, d := range slices.Concat(definitions, objects) {
		s.log.mu.RLock()
		r := s.log.resources.findKind(d.GroupVersionKind())
		s.log.mu.RUnlock()
		if r != nil && r.Namespaced && d.GetNamespace() == "" {
			d.SetNamespace(metav1.NamespaceDefault)
		}
		if err := s.Create(d.Unstructured); err != nil {
			return fmt.Errorf("load objects: %w", d.Wrap(err))
		}
	}
	return nil
}
