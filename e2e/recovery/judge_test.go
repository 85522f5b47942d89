// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The judge of TestShards finds what it is to find.
func TestJudge(t *testing.T) {
	at := func(begin, valid int64, replica string, transitions int, version uint64) record {
		return record{Replica: replica, Shard: 3, Transitions: transitions, Key: "ns/a",
			Version: version, Begin: begin, Valid: valid, Done: true}
	}
	written := []change{{"ns/a", 5, time.Unix(0, 100)}, {"ns/a", 7, time.Unix(0, 150)}}
	good := []record{at(110, 120, "a", 1, 5), at(115, 130, "a", 1, 5), at(200, 210, "b", 2, 7)}
	for _, test := range []struct {
		name    string
		records []record
		want    verdict
	}{
		{"in turn", good, verdict{longest: 60}},
		{"at the same time", append(good, at(205, 206, "a", 2, 7)),
			verdict{double: 1, longest: 56}},
		{"with an old token", append(good, at(220, 230, "a", 1, 7)), verdict{back: 1, longest: 60}},
		{"too old", good[:2], verdict{lost: 1, longest: 20}},
		{"nothing", nil, verdict{lost: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, judge(test.records, written))
		})
	}
	unfinished := at(200, 205, "b", 2, 7)
	unfinished.Done = false
	assert.Equal(t, 1, judge(append(good[:2:2], unfinished), written).lost)
}
