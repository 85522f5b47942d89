// SPDX-License-Identifier: Apache-2.0

package suites_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outcome is how a test ended.
type outcome string

const (
	pass    outcome = "pass"
	fail    outcome = "fail"
	skipped outcome = "skip"
)

// outcomes has the outcome of each "Test", "Test/subtest" and "Test: spec" of a suite.
type outcomes map[string]outcome

var (
	started = regexp.MustCompile(`(?m)^=== RUN +(\S+)`)
	ended   = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)
)

// readTests returns the tests and subtests in the output of a test program. Those that did not end,
// as when the process panicked, have failed.
func readTests(out []byte) outcomes {
	result := outcomes{}
	for _, line := range started.FindAllStringSubmatch(string(out), -1) {
		result[line[1]] = fail
	}
	for _, line := range ended.FindAllStringSubmatch(string(out), -1) {
		result[line[2]] = outcome(strings.ToLower(line[1]))
	}
	return result
}

// readSpecs returns the specs of test in a report of Ginkgo. Those that were not run have failed.
func readSpecs(t *testing.T, test, file string) outcomes {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts           []string
			LeafNodeType, LeafNodeText, State string
		}
	}
	require.NoError(t, json.Unmarshal(content, &suites))
	result := outcomes{}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			name := test + ": " +
				strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			switch {
			case spec.LeafNodeType != "It":
			case spec.State == "passed":
				result[name] = pass
			case spec.State == "pending":
				result[name] = skipped
			default:
				result[name] = fail
			}
		}
	}
	return result
}

// failed returns the tests that failed and have no subtest that did, sorted.
func (o outcomes) failed() []string {
	var names []string
	for name, outcome := range o {
		if outcome == fail && !o.isAbove(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// isAbove reports whether a subtest or spec of the test name failed.
func (o outcomes) isAbove(name string) bool {
	for other, outcome := range o {
		rest, below := strings.CutPrefix(other, name)
		if outcome == fail && below && rest != "" && strings.Contains("/:", rest[:1]) {
			return true
		}
	}
	return false
}

// count returns how many tests ended in this way.
func (o outcomes) count(want outcome) (count int) {
	for _, outcome := range o {
		if outcome == want {
			count++
		}
	}
	return count
}

// A failure belongs to the innermost test.
func TestOutcomes(t *testing.T) {
	got := readTests([]byte("=== RUN   TestA\n--- FAIL: TestA (0.00s)\n" +
		"    --- PASS: TestA/x (0.00s)\n    --- FAIL: TestA/y (0.00s)\n--- SKIP: TestB (0.00s)\n"))
	want := outcomes{"TestA": fail, "TestA/x": pass, "TestA/y": fail, "TestB": skipped}
	assert.Equal(t, want, got)
	assert.Equal(t, []string{"TestA/y"}, got.failed())
	assert.Equal(t, []string{"TestS: a b"}, outcomes{"TestS": fail, "TestS: a b": fail}.failed())
	assert.Equal(t, 1, got.count(pass))
}
