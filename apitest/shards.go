// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
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

// parseShards reads a selector. It is an expression in CEL: a chain of calls of
// shardRange. The errors are the server's, except for the reason of a syntax error.
func parseShards(text string) (*shards, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New(
			"empty shard selector is not allowed; omit the parameter for unfiltered lists")
	}
	e, err := parseCEL(text)
	if err != nil {
		return nil, fmt.Errorf("CEL parse error: %w", err)
	}
	requirements, err := rangesOf(e)
	if err != nil {
		return nil, err
	}
	s := &shards{
		field: requirements[0].Key, text: sharding.NewSelector(requirements...).String(),
	}
	for _, r := range requirements {
		if r.Key != s.field {
			return nil, fmt.Errorf("all shard ranges must use the same field, got %q and %q",
				s.field, r.Key)
		}
		s.ranges = append(s.ranges, hashRange{hashAt(r.Start), hashAt(r.End) - 1})
	}
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

const hashSpaceEnd = "0x10000000000000000"

// rangesOf returns the ranges of a chain of calls, in their order.
func rangesOf(e *expr) ([]sharding.ShardRangeRequirement, error) {
	switch {
	case e.kind != callKind:
		return nil, fmt.Errorf(
			"unexpected expression kind %d; expected shardRange() call or || operator", e.kind)
	case e.name == "_||_":
		left, err := rangesOf(e.args[0])
		if err != nil {
			return nil, err
		}
		right, err := rangesOf(e.args[1])
		return append(left, right...), err
	case e.name == "shardRange":
		r, err := rangeOf(e.args)
		return []sharding.ShardRangeRequirement{r}, err
	}
	return nil, fmt.Errorf("unsupported function %q; only shardRange() and || are allowed", e.name)
}

// rangeOf returns the range of one call.
func rangeOf(args []*expr) (r sharding.ShardRangeRequirement, err error) {
	if len(args) != 3 {
		return r, fmt.Errorf("shardRange() requires exactly 3 arguments, got %d", len(args))
	}
	if r.Key, err = fieldPath(args[0]); err != nil {
		return r, fmt.Errorf("shardRange() first argument: %w", err)
	}
	if r.Key != uidField && r.Key != namespaceField {
		return r, fmt.Errorf("unsupported field path %q; supported: %s, %s", r.Key, uidField,
			namespaceField)
	}
	if r.Start, err = bound(args[1], "hexStart"); err != nil {
		return r, err
	}
	if r.End, err = bound(args[2], "hexEnd"); err != nil {
		return r, err
	}
	if !sharding.HexLess(r.Start, r.End) {
		return r, fmt.Errorf("shard range start %s must be less than end %s", r.Start, r.End)
	}
	return r, nil
}

func fieldPath(e *expr) (string, error) {
	switch e.kind {
	case identKind:
		return e.name, nil
	case selectKind:
		path, err := fieldPath(e.args[0])
		return path + "." + e.name, err
	}
	return "", fmt.Errorf(
		"expected field path (e.g. object.metadata.uid), got expression kind %d", e.kind)
}

// bound returns a bound of a range: a string of 16 hexadecimal digits, or the end of the hash
// space.
func bound(e *expr, name string) (string, error) {
	if e.kind != literalKind {
		return "", fmt.Errorf("%s must be a string literal (e.g. '0xff'), got expression kind %d",
			name, e.kind)
	}
	text := e.text
	digits, hasPrefix := strings.CutPrefix(text, "0x")
	switch {
	case e.name != "string":
		return "", fmt.Errorf("%s must be a string literal, got %s", name, e.name)
	case !hasPrefix:
		return "", fmt.Errorf("%s must have '0x' prefix, got %q", name, text)
	case digits == "":
		return "", fmt.Errorf("%s: hex value is required after '0x'", name)
	case len(digits) > 17:
		return "", fmt.Errorf("%s: hex value too long (%d chars, max 17): %q", name, len(digits),
			digits)
	}
	for _, c := range digits {
		if !strings.ContainsRune("0123456789abcdef", c) {
			return "", fmt.Errorf("%s: invalid hex character %q in %q", name, string(c), text)
		}
	}
	switch {
	case len(digits) == 17 && text != hashSpaceEnd:
		return "", fmt.Errorf("%s: 17-digit hex value must be '%s' (2^64), got %q", name,
			hashSpaceEnd, text)
	case len(digits) < 16:
		return "", fmt.Errorf(
			"%s must be a 0x-prefixed 16-digit hex value, got %q (did you mean %q?)",
			name, text, "0x"+strings.Repeat("0", 16-len(digits))+digits)
	}
	return text, nil
}
