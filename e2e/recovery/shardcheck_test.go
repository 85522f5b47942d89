// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
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
