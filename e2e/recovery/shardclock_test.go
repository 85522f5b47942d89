// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// skewedClock is the time of day of a process, as far as Leases have it: the process reads the
// times in Leases as a clock that is ahead would have them, and writes what that clock says.
type skewedClock struct {
	inner http.RoundTripper
	ahead atomic.Int64
}

// clockSteps is by how much the clock of a process is ahead after each SIGUSR2, from the beginning
// again after the last.
var clockSteps = []time.Duration{45 * time.Minute, -time.Hour, 0}

// obey sets the clock at each SIGUSR2.
func (c *skewedClock) obey() {
	asked := make(chan os.Signal, len(clockSteps))
	signal.Notify(asked, syscall.SIGUSR2)
	for i := 0; ; i++ {
		<-asked
		c.ahead.Store(int64(clockSteps[i%len(clockSteps)]))
	}
}

// RoundTrip implements http.RoundTripper. The client must send JSON.
func (c *skewedClock) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
		body = shiftTimes(body, time.Duration(c.ahead.Load()))
		r.Body, r.GetBody = io.NopCloser(bytes.NewReader(body)), nil
		r.ContentLength = int64(len(body))
	}
	response, err := c.inner.RoundTrip(r)
	if err == nil {
		response.Body = &skewedBody{response.Body, bufio.NewReader(response.Body), c, nil}
		response.ContentLength = -1
	}
	return response, err
}

// skewedBody is an answer: an object, a list, or a watch with one event in each line.
type skewedBody struct {
	io.Closer
	in    *bufio.Reader
	clock *skewedClock
	rest  []byte // of a line
}

func (b *skewedBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		line, err := b.in.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		b.rest = shiftTimes(line, -time.Duration(b.clock.ahead.Load()))
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

var renewTime = regexp.MustCompile(`"renewTime": ?"[^"]*"`)

// shiftTimes adds a duration to the times of Leases in JSON.
func shiftTimes(data []byte, by time.Duration) []byte {
	return renewTime.ReplaceAllFunc(data, func(field []byte) []byte {
		name, value, _ := bytes.Cut(field, []byte(":"))
		var at metav1.MicroTime
		if err := at.UnmarshalJSON(bytes.TrimSpace(value)); err != nil {
			return field
		}
		shifted, _ := metav1.NewMicroTime(at.Add(by)).MarshalJSON() // it never fails
		return slices.Concat(name, []byte(":"), shifted)
	})
}

// A process reads what it has written, and others read what its clock says.
func TestSkewedClock(t *testing.T) {
	var stored []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stored, _ = io.ReadAll(r.Body)
		_, _ = w.Write(slices.Concat(stored, []byte("\n"), stored))
	}))
	defer server.Close()
	clock := &skewedClock{inner: http.DefaultTransport}
	clock.ahead.Store(int64(45 * time.Minute))
	client := http.Client{Transport: clock}
	const lease = `{"spec":{"renewTime":"2026-01-02T03:04:05.000006Z"}}`
	answer, err := client.Post(server.URL, "application/json", strings.NewReader(lease))
	require.NoError(t, err)
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, `{"spec":{"renewTime":"2026-01-02T03:49:05.000006Z"}}`, string(stored))
	assert.Equal(t, lease+"\n"+lease, string(got))
}
