// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A ring behaves like a slice, whatever is pushed and popped.
func TestRing_LikeASlice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var r ring[int]
	var want []int
	for i := 1; i < 3000; i++ {
		switch n := rnd.IntN(100); {
		case n == 0:
			r.grow(rnd.IntN(50))
		case n < 40+20*(i/500%3) && len(want) > 0: // grows for a while, then shrinks
			require.Equal(t, want[0], r.pop())
			want = want[1:]
			r.release()
		default:
			r.push(i)
			want = append(want, i)
		}
		require.Equal(t, len(want), r.len())
		if len(want) > 0 {
			at := rnd.IntN(len(want))
			require.Equal(t, want[at], *r.at(at))
		}
		checkRing(t, &r, func(v int) bool { return v == 0 })
	}
}
