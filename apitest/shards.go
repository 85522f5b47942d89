// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/sharding"
)

// shardCall is a call of shardRange: the field, the first hash, and the one after the last.
var shardCall = regexp.MustCompile(`^\s*shardRange\(\s*` +
	`(object\.metadata\.uid|object\.metadata\.namespace)` +
	`\s*,\s*'(` + hashBound + `)'\s*,\s*'(` + hashBound + `)'\s*\)\s*$`)

const hashBound = `0x[0-9a-f]{16}|0x10000000000000000`

// parseShards reads a ListOptions.ShardSelector as clients write it, which selects the objects with
// a hash of the uid, or of the namespace, in one of some ranges:
//
//	shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || shardRange(…)
//
// To a real server it is an expression in CEL, so that one also accepts parentheses, and has other
// words for errors.
func parseShards(text string) (sharding.Selector, error) {
	var ranges []sharding.ShardRangeRequirement
	for call := range strings.SplitSeq(text, "||") {
		match := shardCall.FindStringSubmatch(call)
		if match == nil {
			return nil, fmt.Errorf("%q is no call of shardRange with object.metadata.uid or "+
				"object.metadata.namespace and two bounds of 16 lower-case hexadecimal digits, "+
				"such as '0x8000000000000000'; or '0x10000000000000000'", call)
		}
		r := sharding.ShardRangeRequirement{Key: match[1], Start: match[2], End: match[3]}
		if !sharding.HexLess(r.Start, r.End) {
			return nil, fmt.Errorf("the range from %s to %s is empty", r.Start, r.End)
		}
		if ranges = append(ranges, r); r.Key != ranges[0].Key {
			return nil, fmt.Errorf("all ranges must have the same field, not %s and %s",
				ranges[0].Key, r.Key)
		}
	}
	return sharding.NewSelector(ranges...), nil
}
