// SPDX-License-Identifier: Apache-2.0

// Package answers notes how a server answers the requests of a test, for the report of
// realserver/cmd/either.
//
//	test -> rest.Config -> [answers] -> apitest, or realserver
//
// Read answers.go; then go test -v ./cmd/either in realserver. Goroutines: none. Locking: a mutex
// in the answers of a test.
package answers

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Variable in the environment makes each test note the answers that it gets, as attributes
// of the test with the key Key. The report sets it.
const Variable = "EITHER_ANSWERS"

// Key is that of such an attribute. The value is "METHOD PATH\tCODE", and for an error
// " MESSAGE". The query of a request is not in it, and generated names end in "-*".
const Key = "answer"

// generated is the end of a name that a server has generated.
var generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// answers is the set of the answers that a test has got.
type answers struct {
	mu  sync.Mutex
	all map[string]bool
}

// Note returns a configuration for clients that note their answers, if Variable is set, or else the
// same one.
func Note(t testing.TB, config *rest.Config) *rest.Config {
	if os.Getenv(Variable) == "" {
		return config
	}
	a := &answers{all: map[string]bool{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &noting{a, next}
	})
	t.Cleanup(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, text := range slices.Sorted(maps.Keys(a.all)) {
			t.Attr(Key, text)
		}
	})
	return config
}

// noting is the transport of one client.
type noting struct {
	answers *answers
	next    http.RoundTripper
}

// RoundTrip notes the answer of a request.
func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.next.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	text := fmt.Sprintf("%s %s\t%d", r.Method, r.URL.Path, resp.StatusCode)
	if resp.StatusCode >= http.StatusBadRequest {
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		text += " " + message(body)
	}
	text = generated.ReplaceAllString(text, "-*")
	n.answers.mu.Lock()
	defer n.answers.mu.Unlock()
	n.answers.all[text] = true
	return resp, nil
}

// message returns the text of an error, in one line.
func message(body []byte) string {
	text := string(body)
	// JSON or protobuf
	if obj, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body); err == nil {
		if status, ok := obj.(*metav1.Status); ok {
			text = status.Message
		}
	}
	return strings.Join(strings.Fields(text), " ")
}
