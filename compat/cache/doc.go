// SPDX-License-Identifier: Apache-2.0

// Package cache is client-go's tools/cache, name for name, on the pieces of this module: where an import of
// k8s.io/client-go/tools/cache is changed to this one, nothing else need change.
//
//	store, deltafifo, reflector, informer <- [compat/cache] <- programs written for client-go
//
// A type is an alias of ours wherever ours has client-go's shape, so that nothing is converted and both names can be mixed
// in one program. Where it has not, because client-go's name carries an older spelling (a stop channel, a handler without
// a context, a function that has been replaced since), a thin type here delegates each call. What behaves otherwise than
// in client-go is in docs/differences.md. Feature gates and environment variables count as there: gates.go, consistency.go.
//
// Read store.go, index.go, queue.go and handler.go, which are aliases; then listwatch.go,
// reflector.go, controller.go and sharedinformer.go, which adapt. The other files are pieces that
// the core does not need: threadsafestore.go, transformingstore.go, expiration.go, fifo.go, heap.go,
// undelta.go, mutationcache.go, mutationdetector.go, retry.go and the fakes.
// Then go test ./compat/cache. Goroutines: the mutation detector's, while its informer runs; otherwise none of its own.
// Locking: each type says for itself.
//
// Source: tools/cache/shared_informer.go SharedInformer, tools/cache/store.go Store
package cache
