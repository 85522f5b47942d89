// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

// A selector selects what the selector of Kubernetes selects.
func TestShards_SelectTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	bound := func() string {
		if random.IntN(4) == 0 {
			ends := []string{"0x0000000000000000", "0xffffffffffffffff", hashSpaceEnd}
			return ends[random.IntN(len(ends))]
		}
		return fmt.Sprintf("0x%016x", random.Uint64())
	}
	selected := 0
	for range 2000 {
		field := []string{uidField, namespaceField}[random.IntN(2)]
		var requirements []sharding.ShardRangeRequirement
		for range 1 + random.IntN(4) {
			start, end := bound(), bound()
			if sharding.HexLess(end, start) {
				start, end = end, start
			}
			if start != end {
				requirements = append(requirements,
					sharding.ShardRangeRequirement{Key: field, Start: start, End: end})
			}
		}
		if len(requirements) == 0 {
			continue
		}
		theirs := sharding.NewSelector(requirements...)
		ours, err := parseShards(theirs.String())
		require.NoError(t, err, theirs)
		require.Equal(t, theirs.String(), ours.text)
		for range 10 {
			v := &version{namespace: fmt.Sprint(random.IntN(100)), object: &object{
				meta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(random.Uint64()))}}}
			v.object.meta.Namespace = v.namespace
			want, err := theirs.Matches(&metav1.PartialObjectMetadata{ObjectMeta: v.object.meta})
			require.NoError(t, err)
			require.Equal(t, want, ours.matches(v), theirs)
			if want {
				selected++
			}
		}
	}
	require.Greater(t, selected, 5000)
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
		again, err := parseShards(s.text)
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}
