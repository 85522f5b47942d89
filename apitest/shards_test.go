// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/sharding"
)

// A selector is that of Kubernetes.
func TestShards_AreTheirs(t *testing.T) {
	const last = "0x10000000000000000"
	theirs := sharding.NewSelector(
		sharding.ShardRangeRequirement{Key: "object.metadata.namespace",
			Start: "0x0000000000000000", End: "0x00000000000000ff"},
		sharding.ShardRangeRequirement{Key: "object.metadata.namespace",
			Start: "0xffffffffffffff00", End: last})
	ours, err := parseShards(theirs.String())
	require.NoError(t, err)
	require.Equal(t, theirs, ours)
}

// The server accepts its own words for a selector, with the same meaning.
func FuzzShards(f *testing.F) {
	for _, text := range []string{
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
		"shardRange( object.metadata.namespace,'0x8000000000000000','0x10000000000000000')||", "||",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseShards(text)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := parseShards(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}
