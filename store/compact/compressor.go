// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// dictionaryBytes is about the size of a dictionary. A larger one makes pods smaller by less than
// a tenth. Tests set a smaller one.
var dictionaryBytes = 32 << 10

const (
	dictionaryID = 1
	// dictionaryTexts is how many texts a dictionary is made of, at least: one that is like no
	// other does not fill it.
	dictionaryTexts = 4
	// windowBytes is how far back a text may refer. The encoder holds as much, for each type.
	windowBytes = 128 << 10
)

// compressor compresses texts that are like each other. The first ones become the dictionary, which
// the others refer to: a pod then needs a third of the bytes.
//
//	Z1  the first texts, up to dictionaryBytes, are compressed without a dictionary, all others
//	    with the same one
//	Z2  coder decompresses every text that was compressed before it was set
//	Z3  a compressed text has a checksum: with another dictionary, decompress fails and
//	    does not return another text
//
// Its methods may be called by any goroutine.
type compressor struct {
	coder atomic.Pointer[coder]

	mu    sync.Mutex
	first []byte // the dictionary so far; nil once it is used
}

type coder struct {
	encoder    *zstd.Encoder
	decoder    *zstd.Decoder
	dictionary bool
}

func newCoder(dictionary []byte) *coder {
	encoding := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(true),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(windowBytes),
	}
	decoding := []zstd.DOption{zstd.WithDecoderLowmem(true)}
	if dictionary != nil {
		encoding = append(encoding, zstd.WithEncoderDictRaw(dictionaryID, dictionary))
		decoding = append(decoding, zstd.WithDecoderDictRaw(dictionaryID, dictionary))
	}
	encoder, err := zstd.NewWriter(nil, encoding...)
	if err != nil {
		panic(fmt.Errorf("compact: %w", err)) // not reached: the options are constant
	}
	decoder, err := zstd.NewReader(nil, decoding...)
	if err != nil {
		panic(fmt.Errorf("compact: %w", err))
	}
	return &coder{encoder, decoder, dictionary != nil}
}

// compress returns text compressed.
func (c *compressor) compress(text []byte) []byte {
	coder := c.coder.Load()
	if coder == nil || !coder.dictionary {
		coder = c.learn(text)
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	*buffer = coder.encoder.EncodeAll(text, (*buffer)[:0])
	return bytes.Clone(*buffer)
}

// decompress returns the text, in memory of its own.
func (c *compressor) decompress(data []byte) ([]byte, error) {
	return c.coder.Load().decoder.DecodeAll(data, nil)
}

// learn adds text to the dictionary, and returns the coder for it.
func (c *compressor) learn(text []byte) *coder {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := c.coder.Load()
	switch {
	case current == nil:
		current = newCoder(nil)
	case len(c.first) >= dictionaryBytes:
		current = newCoder(c.first)
		c.first = nil
	}
	c.coder.Store(current)
	if !current.dictionary {
		c.first = append(c.first, text[:min(len(text), dictionaryBytes/dictionaryTexts)]...)
	}
	return current
}
