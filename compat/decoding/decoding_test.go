// SPDX-License-Identifier: Apache-2.0

package decoding_test

import (
	"context"
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
	require.Equal(t, client, decoding.Negotiator(t.Context(), client))

	chosen := decoding.With(t.Context(), func(c runtime.ClientNegotiator) runtime.ClientNegotiator {
		return negotiator{name: "other than " + c.(negotiator).name}
	})
	below, cancel := context.WithCancel(chosen)
	defer cancel()
	require.Equal(t, negotiator{name: "other than client"}, decoding.Negotiator(below, client))
	require.Nil(t, decoding.Negotiator(below, nil))
}
