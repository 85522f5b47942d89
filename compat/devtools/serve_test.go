// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Another user of the machine, without the token, cannot hold the program's file descriptors.
func TestServe_BoundsConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ours := newServer(withToken("token", handler))
	assert.Positive(t, ours.IdleTimeout)
	assert.Positive(t, ours.ReadTimeout)
	go func() { _ = ours.Serve(listener) }()
	defer ours.Close()
	link := "http://" + listener.Addr().String()

	response, err := http.Get(link)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, response.StatusCode)
	assert.True(t, response.Close, "the connection is not kept")

	var held []net.Conn
	for range maxConnections + 1 {
		connection, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		held = append(held, connection)
	}
	last := held[maxConnections]
	require.NoError(t, last.SetReadDeadline(time.Now().Add(headerTimeout/2)))
	_, err = last.Read(make([]byte, 1))
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server closes it at once")
	for _, connection := range held {
		require.NoError(t, connection.Close())
	}
	require.Eventually(t, func() bool {
		response, err := http.Get(link + "/token/debug/informers")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
}
