// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The committed plots show the committed measurements.
func TestPlots_AreUpToDate(t *testing.T) {
	const root = "../../.."
	for _, name := range plots {
		got, err := os.ReadFile(picture(root, name))
		require.NoError(t, err)
		want, err := plot(root, name)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "%s is outdated: run make pictures", name)
	}
}

// The runs of the two implementations are compared pair by pair. Rates are left out.
func TestCondense(t *testing.T) {
	ratios := string(condense(`pkg: example.com/informerstack/store
BenchmarkList/impl=ours-2        123  100 ns/op  8 B/op  5.0 MB/s
BenchmarkList/impl=client-go-2   100  300 ns/op  8 B/op  2.0 MB/s
PASS
pkg: example.com/informerstack/store
BenchmarkList/impl=ours-2        123  200 ns/op  8 B/op  5.0 MB/s
BenchmarkList/impl=client-go-2   100  200 ns/op  8 B/op  2.0 MB/s
`))
	assert.Contains(t, ratios, "of 2 runs")
	_, rows, _ := strings.Cut(ratios, "bench.txt\n")
	assert.Equal(t, "store List B/op client-go 1.00 1.00 1.00\n"+
		"store List ns/op client-go 1.00 2.00 3.00\n", rows)
}
