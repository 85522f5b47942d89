// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/compat/requests"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// A reconcile has the requests that its goroutine sent, if compat/devtools is part of the program.
func TestShown(t *testing.T) {
	require.Same(t, http.DefaultTransport, requests.Shown(http.DefaultTransport))

	j := journal.New()
	j.Record(time.Minute)
	found.To(func(string, func() any) (gone func()) { return func() {} }, j)
	t.Cleanup(func() { found.To(nil, nil) })
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client := http.Client{Transport: requests.Shown(server.Client().Transport)}

	queue := journal.NewDelayingQueue(j, "q",
		workqueue.NewTypedDelayingQueue(workqueue.Config[string]{}))
	t.Cleanup(queue.ShutDown)
	queue.Add("ns/a")
	_, _ = queue.Get()
	response, err := client.Get(server.URL + "/api/v1/pods")
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	queue.Done("ns/a")

	_, known := j.About("ns/a")
	require.Len(t, known, 1)
	sent := known[0].Last[0].Requests
	require.Len(t, sent, 1)
	assert.Equal(t, "/api/v1/pods", sent[0].Path)
	assert.Equal(t, http.StatusNotFound, sent[0].Status)
}
