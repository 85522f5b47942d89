// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const sample = `# narration only

# one
add a
pop
----
a
---- client-go
a a
---- other
b

pop
----
`

// Reading and writing a file changes nothing.
func TestFormat_RoundTrip(t *testing.T) {
	sections := parse(sample)
	assert.Len(t, sections, 3)
	for range 20 { // in no order of a map
		assert.Equal(t, sample, format(sections))
	}
}

func TestWant_FallsBackToOurs(t *testing.T) {
	sections := parse(sample)
	assert.Equal(t, []string{"a a"}, sections[1].want("client-go"))
	assert.Equal(t, []string{"a"}, sections[1].want(Ours))
	assert.Empty(t, sections[2].want("client-go"))
}

func TestRecord_KeepsAVariantOnlyWhereItDiffers(t *testing.T) {
	s := section{output: map[string][]string{Ours: {"a"}}}
	s.record("client-go", []string{"b"})
	assert.Equal(t, []string{"b"}, s.output["client-go"])
	s.record("client-go", []string{"a"})
	assert.NotContains(t, s.output, "client-go")
}
