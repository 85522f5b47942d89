// SPDX-License-Identifier: Apache-2.0

// Package compact keeps the objects of a store in a small form, and gives readers what they need of
// them.
//
//	reflector -> [pack] -> deltafifo -> informer -> store      -> [unpack] -> listers
//	                                             -> change log -> [unpack] -> handlers
//
// To use it, set informer.Options.Form. There are three forms:
//
//	Compressed()           whole objects, compressed; readers get them decoded
//	FieldsOf[T](paths...)  the values of some fields; readers get a *Fields
//	Summary(func(T) S)     a struct of the program's own; readers get that
//
// Objects are packed before they are queued, so that the first list is never in memory as a whole.
// A packed object has a key, a UID and a resourceVersion (Meta), so that queue, store and change
// log work as with other objects.
//
// Read form.go (what readers get), packer.go (what the store holds, and its indexes), indexer.go
// (what readers call); then each form: compressed.go with protobuf.go and compressor.go, fields.go
// with path.go, summary.go. Then run go test -v ./store/compact. Goroutines: none. Locking: one
// mutex in the Packer, for its list of index functions; a compressor has one for its dictionary. No
// index function of the program, and no function of a Summary, runs under either, except in
// AddIndexers: it computes new indexes under the Packer's mutex, and Pack waits meanwhile.
package compact
