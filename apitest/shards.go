// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"hash/fnv"
	"io"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/sharding"
)

// shards is a parsed ListOptions.ShardSelector: the objects with a hash of the uid, or of the
// namespace, in one of some ranges. nil selects all objects.
//
//	shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || shardRange(…)
type shards struct {
	field  string // uidField or namespaceField
	ranges []hashRange
	text   string // the selector as the server repeats it in the metadata of a list
}

// hashRange holds the hashes from first to last.
type hashRange struct{ first, last uint64 }

const (
	uidField       = "object.metadata.uid"
	namespaceField = "object.metadata.namespace"
)

func (s *shards) matches(v *version) bool {
	if s == nil {
		return true
	}
	value := v.namespace
	if s.field == uidField {
		value = string(v.object.meta.UID)
	}
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, value) // never fails
	sum := hash.Sum64()
	for _, r := range s.ranges {
		if r.first <= sum && sum <= r.last {
			return true
		}
	}
	return false
}

const hashSpaceEnd = "0x10000000000000000"

// shardCall is a call of shardRange: the field, the first hash, and the one after the last.
var shardCall = regexp.MustCompile(fmt.Sprintf(
	`^\s*shardRange\(\s*(%[1]s|%[2]s)\s*,\s*'(%[3]s)'\s*,\s*'(%[3]s)'\s*\)\s*$`,
	regexp.QuoteMeta(uidField), regexp.QuoteMeta(namespaceField), `0x[0-9a-f]{16}|`+hashSpaceEnd))

// parseShards reads a selector as clients write it: calls of shardRange. To a real server it is an
// expression in CEL, so that one also accepts parentheses, and has other words for errors.
func parseShards(text string) (*shards, error) {
	var requirements []sharding.ShardRangeRequirement
	s := &shards{}
	for call := range strings.SplitSeq(text, "||") {
		match := shardCall.FindStringSubmatch(call)
		if match == nil {
			return nil, fmt.Errorf("%q is no call of shardRange with %s or %s and two bounds "+
				"of 16 lower-case hexadecimal digits, such as '0x8000000000000000'; or '%s'",
				call, uidField, namespaceField, hashSpaceEnd)
		}
		r := sharding.ShardRangeRequirement{Key: match[1], Start: match[2], End: match[3]}
		if !sharding.HexLess(r.Start, r.End) {
			return nil, fmt.Errorf("the range from %s to %s is empty", r.Start, r.End)
		}
		if requirements = append(requirements, r); r.Key != requirements[0].Key {
			return nil, fmt.Errorf("all ranges must have the same field, not %s and %s",
				requirements[0].Key, r.Key)
		}
		s.ranges = append(s.ranges, hashRange{hashAt(r.Start), hashAt(r.End) - 1})
	}
	s.field, s.text = requirements[0].Key, sharding.NewSelector(requirements...).String()
	return s, nil
}

// hashAt returns a bound that was checked. The end of the hash space is 0, so that the hash before
// it is the last one.
func hashAt(bound string) uint64 {
	if bound == hashSpaceEnd {
		return 0
	}
	n, err := strconv.ParseUint(bound, 0, 64)
	if err != nil {
		panic(err) // it was checked
	}
	return n
}
