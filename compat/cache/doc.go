// SPDX-License-Identifier: Apache-2.0

// Package cache has the names of client-go's tools/cache, on the pieces of this module. A program
// that changes its import of k8s.io/client-go/tools/cache to this package needs no other change.
//
//	store, deltafifo, reflector, informer <- [compat/cache] <- programs written for client-go
//
// A type is an alias of ours if ours has client-go's shape. Then no value is converted, and both
// names can be mixed in one program. Otherwise client-go's name has an older form (a stop channel,
// a handler without a context, a setter), and a thin type here delegates each call. The differences
// from client-go's behaviour are in docs/differences.md. Feature gates and environment variables
// have the same effect as in client-go: gates.go, consistency.go.
//
// To use it, change the import. New programs use package informer, which has fewer names.
//
// Read store.go, index.go, queue.go and handler.go, which are aliases; then listwatch.go,
// reflector.go, controller.go, informer.go and sharedinformer.go, which adapt. The other files are
// pieces that the core does not use: threadsafestore.go, transformingstore.go, expiration.go,
// fifo.go, heap.go, undelta.go, mutationcache.go, mutationdetector.go, retry.go and the fakes. Then
// go test ./compat/cache. Goroutines: only the mutation detector's, while its informer runs.
// Locking: see each type.
//
// Source: tools/cache/shared_informer.go SharedInformer, tools/cache/store.go Store
package cache
