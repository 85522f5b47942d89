// SPDX-License-Identifier: Apache-2.0

// Package testserver starts a server of package apitest for one test, and changes its ConfigMaps.
//
//	test -> [testserver] -> apitest, over a pipe in the test's bubble of fake time
//
// Goroutines: those of the server, and those of Run until stop has returned. Locking: none.
package testserver

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
)

// Server is an API server, which stops when its test ends.
type Server struct {
	*apitest.Server
	t testing.TB
}

// New starts a server.
func New(t testing.TB, options apitest.Options) *Server {
	s := &Server{apitest.NewServer(options), t}
	require.NoError(t, s.StartPipe())
	t.Cleanup(s.Close)
	return s
}

// Config is that of a client without a rate limit, which prefers JSON.
func (s *Server) Config() *rest.Config {
	config := &rest.Config{Host: s.URL, Transport: s.Transport(), QPS: -1}
	config.ContentType = "application/json"
	return config
}

// Client is a client with Config.
func (s *Server) Client() rest.Interface {
	return kubernetes.NewForConfigOrDie(s.Config()).CoreV1().RESTClient()
}

// ConfigMap returns a ConfigMap of namespace default.
func ConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// CreateMap creates a ConfigMap of namespace default.
func (s *Server) CreateMap(name string) { require.NoError(s.t, s.Create(ConfigMap(name))) }

// UpdateMap changes its data.
func (s *Server) UpdateMap(name string) {
	m := ConfigMap(name)
	require.NoError(s.t, s.Get(m))
	m.Data = map[string]string{"version": m.ResourceVersion}
	require.NoError(s.t, s.Update(m))
}

// DeleteMap deletes it.
func (s *Server) DeleteMap(name string) { require.NoError(s.t, s.Delete(ConfigMap(name))) }

// Run calls each of the functions in a goroutine until stop is called, which waits for them.
func Run(ctx context.Context, functions ...func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, f := range functions {
		running.Go(func() { f(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}
