// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// normalizer prints JSON without the values that differ between runs:
//
//   - uid and creationTimestamp are checked for form and left out; so is managedFields (player.go);
//   - an object's resourceVersion is rv1, rv2, ... in the order of their first appearance;
//   - a list's or bookmark's is now, if no object seen so far is newer, else that of the newest
//     object that it is not older than: writes of other tests do not count;
//   - in messages, the server's own counters are now, and parts that depend on its implementation
//     are <why>;
//   - tokens are <continue> and <token>, their issuer <issuer>, ages <age>, times <time>, uids
//     <uid>, the address of a service <address>; columns of tables have no description, and the
//     rules of a user are sorted;
//   - a hash is the variable that holds it;
//   - the test's namespace is ns; the suffix of generateName is <random>.
type normalizer struct {
	t        *testing.T
	ns       string
	symbols  map[string]string // resourceVersion -> rv1
	versions map[string]string // rv1 -> resourceVersion
	newest   uint64            // of all objects seen
	names    map[string]string // hash -> $a
}

func newNormalizer(t *testing.T, ns string) *normalizer {
	return &normalizer{
		t: t, ns: ns,
		symbols: map[string]string{}, versions: map[string]string{}, names: map[string]string{},
	}
}

// versionOf returns the resourceVersion that is printed as symbol.
func (n *normalizer) versionOf(symbol string) (string, bool) {
	rv, ok := n.versions[symbol]
	return rv, ok
}

// normalize prints a decoded body, which it changes.
func (n *normalizer) normalize(value any) string {
	return n.print(n.clean(value))
}

// normalizeEvent prints the object of a watch event. A bookmark's metadata describes the
// collection, as a list's does.
func (n *normalizer) normalizeEvent(event map[string]any) string {
	object, ok := event["object"].(map[string]any)
	require.True(n.t, ok, "an event has an object: %v", event)
	metadata, _ := object["metadata"].(map[string]any)
	if event["type"] == "BOOKMARK" && metadata != nil {
		metadata["resourceVersion"] = n.collectionVersion(metadata["resourceVersion"])
	}
	return n.normalize(object)
}

func (n *normalizer) print(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	require.NoError(n.t, encoder.Encode(value))
	return strings.ReplaceAll(strings.TrimSpace(b.String()), n.ns, "ns")
}

func (n *normalizer) clean(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if metadata, ok := value["metadata"].(map[string]any); ok {
			if _, isList := value["items"]; isList || value["kind"] == "Table" {
				n.cleanListMeta(metadata)
			} else {
				n.cleanObjectMeta(metadata)
			}
		}
		if _, isColumn := value["priority"]; isColumn {
			delete(value, "description")
		}
		if value["kind"] == "Status" {
			n.cleanStatus(value)
		}
		if ip, ok := value["clusterIP"]; ok && ip != "None" {
			value["clusterIP"], value["clusterIPs"] = "<address>", []any{"<address>"}
		}
		for _, key := range []string{"lastTransitionTime", "lastUpdateTime",
			"expirationTimestamp"} {
			if isTime(value[key]) {
				value[key] = "<time>"
			}
		}
		if pods, ok := value["disruptedPods"].(map[string]any); ok {
			for name := range pods {
				pods[name] = "<time>"
			}
		}
		for key, field := range value {
			value[key] = n.clean(field)
		}
		sortRules(value["resourceRules"])
		sortRules(value["nonResourceRules"])
	case []any:
		for i, item := range value {
			value[i] = n.clean(item)
		}
	case string:
		return n.cleanString(value)
	}
	return value
}

// sortRules sorts the rules of a user, which a real server lists in no order.
func sortRules(value any) {
	rules, _ := value.([]any)
	slices.SortFunc(rules,
		func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

func (n *normalizer) cleanListMeta(metadata map[string]any) {
	if rv, ok := metadata["resourceVersion"]; ok {
		metadata["resourceVersion"] = n.collectionVersion(rv)
	}
	if token, ok := metadata["continue"].(string); ok && token != "" {
		metadata["continue"] = "<continue>"
	}
}

var (
	uid    = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	suffix = regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{5}$`)
)

func (n *normalizer) cleanObjectMeta(metadata map[string]any) {
	delete(metadata, "managedFields")
	if value, ok := metadata["uid"].(string); ok && uid.MatchString(value) {
		delete(metadata, "uid")
	}
	if isTime(metadata["creationTimestamp"]) {
		delete(metadata, "creationTimestamp")
	}
	if isTime(metadata["deletionTimestamp"]) {
		metadata["deletionTimestamp"] = "<time>"
	}
	if rv, ok := metadata["resourceVersion"].(string); ok {
		metadata["resourceVersion"] = n.objectVersion(rv)
	}
	if prefix, ok := metadata["generateName"].(string); ok {
		if rest, ok := strings.CutPrefix(fmt.Sprint(metadata["name"]), prefix); ok &&
			suffix.MatchString(rest) {
			metadata["name"] = prefix + "<random>"
		}
	}
}

// cleanStatus cleans the continue token that the Status of an expired list may contain.
func (n *normalizer) cleanStatus(status map[string]any) {
	if metadata, ok := status["metadata"].(map[string]any); ok {
		n.cleanListMeta(metadata)
	}
	n.sortCauses(status)
}

// sortCauses sorts the causes of a Status of a custom kind or its definition, and their texts in
// its message. A real server has those of a schema in no order.
func (n *normalizer) sortCauses(status map[string]any) {
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	group, _ := details["group"].(string)
	isBuiltin := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
	if isBuiltin && group != "apiextensions.k8s.io" {
		return
	}
	var texts []string
	for _, cause := range causes {
		cause, _ := cause.(map[string]any)
		texts = append(texts, fmt.Sprintf("%v: %v", cause["field"], cause["message"]))
	}
	message, _ := status["message"].(string)
	start, end := strings.Index(message, "["), strings.LastIndex(message, "]")
	if len(texts) < 2 || start < 0 || end != len(message)-1 {
		return
	}
	before := strings.Join(texts, ", ")
	slices.SortStableFunc(causes, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	slices.Sort(texts)
	if message[start+1:end] == before {
		status["message"] = message[:start+1] + strings.Join(texts, ", ") + "]"
	}
}

func isTime(value any) bool {
	text, ok := value.(string)
	_, err := time.Parse(time.RFC3339, text)
	return ok && err == nil
}

func (n *normalizer) objectVersion(rv string) string {
	if symbol, ok := n.symbols[rv]; ok {
		return symbol
	}
	number, err := strconv.ParseUint(rv, 10, 64)
	if err != nil || number == 0 {
		return rv // not a version: print it; that of a bookmark is replaced already
	}
	n.newest = max(n.newest, number)
	symbol := fmt.Sprint("rv", len(n.symbols)+1)
	n.symbols[rv], n.versions[symbol] = symbol, rv
	return symbol
}

// collectionVersion names a version of the whole collection. Other tests write to the server too,
// so it may be newer than the newest object here, or between two of them.
func (n *normalizer) collectionVersion(value any) string {
	rv := fmt.Sprint(value)
	number, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return rv
	}
	if number >= n.newest {
		return "now"
	}
	symbol, newest := "old", uint64(0)
	for seen, name := range n.symbols {
		if version, _ := strconv.ParseUint(seen, 10, 64); version <= number && version > newest {
			symbol, newest = name, version
		}
	}
	return symbol
}

// reasons are the parts of messages that depend on the server's implementation.
var reasons = regexp.MustCompile(
	`((cannot be handled as a \w+|json parse error|error decoding patch|invalid shard selector|` +
		`continue key is not valid|accepted media types include|` +
		`media types are accepted|Available representations): ).*`)

// Messages contain the server's own types: the difference between two, or a template of pods.
var (
	difference = regexp.MustCompile(`(?s)\n@@.*`)
	dump       = regexp.MustCompile(`\{.*"[Ss]pec":\{.*\}(: field is immutable)`)
)

var (
	age      = regexp.MustCompile(`^(\d+[smhdy])+$`)
	jwt      = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]*`)
	issuer   = regexp.MustCompile(`https://(127\.0\.0\.1:\d+|apitest\.invalid)`)
	ago      = regexp.MustCompile(`\(\w+ ago\)`)
	counters = regexp.MustCompile(`current: \d+|\(\d+\)$`)
	number   = regexp.MustCompile(`\b\d+\b`)
)

// cleanString replaces ages, uids, tokens, and the resourceVersions in a message.
func (n *normalizer) cleanString(text string) string {
	if age.MatchString(text) {
		return "<age>"
	}
	text = uid.ReplaceAllString(text, "<uid>")
	text = issuer.ReplaceAllString(text, "<issuer>")
	text = ago.ReplaceAllString(text, "(<age> ago)")
	text = jwt.ReplaceAllString(text, "<token>")
	for hash, name := range n.names {
		text = strings.ReplaceAll(text, hash, name)
	}
	text = reasons.ReplaceAllString(text, "${1}<why>")
	text = dump.ReplaceAllString(difference.ReplaceAllString(text, ""), "<why>$1")
	if strings.Contains(text, "resource version: ") {
		text = counters.ReplaceAllStringFunc(text, func(match string) string {
			return number.ReplaceAllString(match, "now")
		})
	}
	if !strings.Contains(strings.ToLower(text), "version") {
		return text
	}
	return number.ReplaceAllStringFunc(text, func(rv string) string {
		if symbol, ok := n.symbols[rv]; ok {
			return symbol
		}
		return rv
	})
}
