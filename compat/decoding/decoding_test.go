// SPDX-License-Identifier: Apache-2.0

package decoding_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/compat/decoding"
)

type negotiator struct {
	runtime.ClientNegotiator
	name string
}

func TestNegotiator(t *testing.T) {
	client := negotiator{name: "client"}
	at := func() *url.URL { return &url.URL{Path: "/api/v1/pods"} }
	require.Equal(t, client, decoding.Negotiator(t.Context(), client, at))

	chosen := decoding.With(t.Context(), func(
		c runtime.ClientNegotiator, at func() *url.URL,
	) runtime.ClientNegotiator {
		return negotiator{name: "other than " + c.(negotiator).name + " for " + at().Path}
	})
	below, cancel := context.WithCancel(chosen)
	defer cancel()
	require.Equal(t, negotiator{name: "other than client for /api/v1/pods"},
		decoding.Negotiator(below, client, at))
	require.Nil(t, decoding.Negotiator(below, nil, at))
}
