// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// naiveLog is a changeLog as a slice. Its cursors are copies of the slice.
type naiveLog struct{ cursors []*naiveCursor }

type naiveCursor struct {
	waiting []string
	closed  bool
}

func (l *naiveLog) append(changes []string) {
	for _, c := range l.cursors {
		if !c.closed {
			c.waiting = append(c.waiting, changes...)
		}
	}
}

// A changeLog and its cursors behave like slices for random appends, reads, closes and drops.
func TestModel_ChangeLogAgainstSlices(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		log, naive := newChangeLog(), &naiveLog{}
		var cursors []*cursor
		number := 0
		some := func() (changes []change, names []string) {
			for range random.IntN(3 * batchLen) {
				number++
				names = append(names, strconv.Itoa(number))
				changes = append(changes, add(strconv.Itoa(number), false))
			}
			return changes, names
		}
		read := func(c *cursor) (names []string) {
			b := c.next()
			if b == nil {
				return nil
			}
			for _, change := range b.changes {
				names = append(names, change.newObj.(string))
			}
			return names
		}
		for range 100 {
			i := 0
			if len(cursors) > 0 {
				i = random.IntN(len(cursors))
			}
			switch op := random.IntN(10); {
			case op == 0:
				changes, names := some()
				cursors = append(cursors, log.newCursor(changes, false))
				naive.cursors = append(naive.cursors, &naiveCursor{waiting: names})
			case op < 4:
				changes, names := some()
				for some := range slices.Chunk(changes, batchLen) {
					log.append(some, nil)
				}
				naive.append(names)
			case len(cursors) == 0:
			case op == 4 && !naive.cursors[i].closed:
				cursors[i].close()
				naive.cursors[i].closed = true
			case op == 5 && random.IntN(4) == 0:
				cursors[i].drop()
				cursors = slices.Delete(cursors, i, i+1)
				naive.cursors = slices.Delete(naive.cursors, i, i+1)
			default:
				got, waiting := read(cursors[i]), naive.cursors[i].waiting
				require.Equal(t, len(waiting) == 0, len(got) == 0, "seed %d", seed)
				require.True(t, slices.Equal(waiting[:len(got)], got), "seed %d: %v", seed, got)
				naive.cursors[i].waiting = waiting[len(got):]
			}
			require.Nil(t, log.last.next.Load(), "W1")
			require.Empty(t, log.last.changes, "W1")
		}
		for i, c := range cursors {
			for got := read(c); got != nil; got = read(c) {
				require.Equal(t, naive.cursors[i].waiting[:len(got)], got, "seed %d", seed)
				naive.cursors[i].waiting = naive.cursors[i].waiting[len(got):]
			}
			require.Empty(t, naive.cursors[i].waiting, "seed %d", seed)
			require.True(t, c.at == c.end || c.at == log.last, "W3")
		}
	}
}
