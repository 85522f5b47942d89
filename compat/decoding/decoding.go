// SPDX-License-Identifier: Apache-2.0

// Package decoding lets a reflector choose the decoders of the answers to its requests, whatever
// client sends them, and has faster ones with the same results.
//
//	compat/cache -> context of a LIST or WATCH -> [decoding] -> rest of a swapped client-go
//
// The context passes through the program's functions and clients to the request. In the copy of
// client-go that informerstack swap writes, package rest calls Negotiator for each answer, with the
// URL of the request. Nothing else reads the value in the context.
//
// The faster decoders read a watch ahead, cut it into frames, and decode each object as package
// wire does. Answers that client-go may read in another way stay with its own decoders.
//
// rest imports this package, so this package imports nothing that depends on rest.
//
// Read decoding.go, faster.go (which decoders are replaced), list.go and watch.go; then go test
// ./compat/decoding. Goroutines: one reads a watch ahead until its end. Locking: none of its own.
//
// Source: rest/request.go Request, rest/watch/decoder.go Decoder
package decoding

import (
	"context"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime"
)

// Environment is the variable that turns faster decoders off, with the value client-go.
const Environment = "INFORMERSTACK_DECODER"

// Chooser returns the negotiator for an answer: the client's, or another one in its place. at
// returns the URL of the request. Several requests may call a Chooser at the same time.
type Chooser func(client runtime.ClientNegotiator, at func() *url.URL) runtime.ClientNegotiator

type key struct{}

// With returns ctx for requests with the decoders that choose returns.
func With(ctx context.Context, choose Chooser) context.Context {
	return context.WithValue(ctx, key{}, choose)
}

// Negotiator returns the negotiator for the answer to a request with ctx: client, unless ctx has a
// Chooser. at returns the URL of the request.
func Negotiator(
	ctx context.Context, client runtime.ClientNegotiator, at func() *url.URL,
) runtime.ClientNegotiator {
	if choose, ok := ctx.Value(key{}).(Chooser); ok && client != nil {
		return choose(client, at)
	}
	return client
}
