// SPDX-License-Identifier: Apache-2.0

// Package firstsync measures the first sync of an informer, from the socket to its store, beside
// client-go's.
//
//	a process with the server -> LIST or WATCH over HTTP -> a process with one informer
//
// A process of its own shows the memory that the system has to give it, garbage included, and the
// processor time of everything that it does. Each subject makes one sync:
//
//	way      list       a clientset's functions: LIST, decoded as one object
//	         streamed   LIST, decoded item by item by informer.New; in client-go the same as list
//	         watchlist  a watch that begins with the initial state
//	content  json, protobuf
//	impl     ours       package informer
//	         compat     package compat/cache
//	         client-go  client-go's tools/cache
//
// With transform=slow, a transform takes 100 µs of processor time for each pod, and so the subject
// reads more slowly than the server sends. That shows how much is read ahead.
//
// Read bench_test.go, subject_test.go (the informers) and server_test.go (the pods). Then run
// go test -run - -bench . ./internal/tools/firstsync, or with -pods 300000, or with -managed, for
// pods with managed fields, or with -large 20000, for large pods, or with -http2, or with
// -transform 1ms. Goroutines: those of the HTTP server and of the informers. Locking: none.
package firstsync
