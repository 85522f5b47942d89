// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"LateHandlerGetsReplay": "Late handler gets replay",
		"AFailureIsRetried":     "A failure is retried",
		"RealFIFOKeepsOrder":    "Real FIFO keeps order",
	} {
		assert.Equal(t, want, words(name))
	}
}

// Every piece has stories and a synopsis.
func TestRead(t *testing.T) {
	t.Chdir("../..")
	for _, piece := range pieces {
		stories, synopsis, err := read(piece)
		require.NoError(t, err)
		assert.NotEmpty(t, stories, piece)
		assert.Contains(t, synopsis, "Package "+piece)
		for _, s := range stories {
			assert.NotEmpty(t, s.shows, s.name)
		}
	}
	_, _, err := read("nowhere")
	assert.ErrorContains(t, err, "no stories in nowhere")
}
