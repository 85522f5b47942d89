// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// readRecords returns the records of a file in their order, and the last usage. A line that was not
// finished, because its process was killed, is not one.
func readRecords(file string) (records []record, last usage, err error) {
	in, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil, usage{}, nil // it has written nothing yet
	} else if err != nil {
		return nil, usage{}, err
	}
	defer in.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := struct {
			record
			usage
		}{}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		if line.Replica == "" {
			last = line.usage
		} else {
			records = append(records, line.record)
		}
	}
	return records, last, nil
}

// verdict is what is wrong with the work of a group. All numbers but the last are to be 0.
type verdict struct {
	double  int           // reconciles of a shard while another process had the right to act for it
	back    int           // reconciles with a token that is older than that of an earlier one
	lost    int           // changes that no reconcile has seen
	longest time.Duration // from a change to the end of the first reconcile that has seen it
}

func (v verdict) String() string {
	return fmt.Sprintf("double reconciles %d, tokens that went back %d, lost changes %d, longest "+
		"gap %.1f s", v.double, v.back, v.lost, v.longest.Seconds())
}

// judge checks the records of all processes against the changes. A reconcile that has seen a later
// change of an object has seen the earlier ones.
func judge(records []record, changes []change) verdict {
	var v verdict
	v.double, v.back = overlaps(records)
	ends := map[string][]record{} // that are done, by key
	for _, r := range records {
		if r.Done {
			ends[r.Key] = append(ends[r.Key], r)
		}
	}
	for _, done := range ends {
		slices.SortFunc(done, func(a, b record) int { return cmp.Compare(a.Valid, b.Valid) })
	}
	for _, c := range changes {
		sees := func(r record) bool { return r.Version >= c.version }
		first := slices.IndexFunc(ends[c.key], sees)
		if first < 0 {
			v.lost++
			continue
		}
		v.longest = max(v.longest, time.Unix(0, ends[c.key][first].Valid).Sub(c.at))
	}
	return v
}

// overlaps counts the reconciles that begin while another process may reconcile a key of the same
// shard, and those with a token older than the newest so far.
func overlaps(records []record) (double, back int) {
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(a.Begin, b.Begin) })
	valid := make([]map[string]int64, groupShards) // until when, by process
	newest := make([]int, groupShards)
	for _, r := range records {
		if valid[r.Shard] == nil {
			valid[r.Shard] = map[string]int64{}
		}
		for other, until := range valid[r.Shard] {
			if other != r.Replica && until > r.Begin {
				double++
			}
		}
		valid[r.Shard][r.Replica] = max(valid[r.Shard][r.Replica], r.Valid)
		if r.Transitions < newest[r.Shard] {
			back++
		}
		newest[r.Shard] = max(newest[r.Shard], r.Transitions)
	}
	return double, back
}

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
