// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outcomes maps "package", "package Test" and "package Test/subtest" to "pass", "fail" or "skip".
// For Ginkgo's suites it also has "package Test: specs that ran: count", and "package Test: spec"
// for each spec that failed.
type outcomes map[string]string

// testJSON runs go test with args, including the packages, in the module in dir: one package at a
// time, because they compete for time and some for ports. more is added to the environment.
func testJSON(t testing.TB, dir, goWork string, more []string, args ...string) outcomes {
	t.Helper()
	start := time.Now()
	cmd := exec.CommandContext(t.Context(), "go",
		append([]string{"test", "-json", "-count=1", "-p=1"}, args...)...)
	cmd.Dir, cmd.Env = dir, environ(goWork, more...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	// a failed test sets the exit code
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	result, said := read(out)
	failed := result.failed(nil)
	for _, name := range failed {
		t.Log("failed: " + name)
		t.Log(said[testOf(name)])
		delete(said, testOf(name)) // once is enough
	}
	require.NotEmpty(t, result, "no test ran: %s", stderr.String())
	t.Logf("go test %s, GOWORK=%s: %d tests and subtests in %s, failed: %d",
		strings.Join(args, " "), goWork, len(result), time.Since(start).Round(time.Second),
		len(failed))
	return result
}

var (
	colour  = regexp.MustCompile("\x1b\\[[0-9;]*m")
	specRan = regexp.MustCompile(`^Ran (\d+) of \d+ Specs`)
	badSpec = regexp.MustCompile(`^\s*\[(?:FAIL|PANICKED!|TIMEDOUT|INTERRUPTED)\] (.*)`)
)

// read parses the output of go test -json: the outcomes, and the output of each test.
func read(out []byte) (result outcomes, said map[string]string) {
	result, said = outcomes{}, map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var event struct{ Action, Package, ImportPath, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		name := strings.TrimSpace(event.Package + " " + event.Test)
		switch event.Action {
		case "pass", "fail", "skip":
			result[name] = event.Action
		case "build-fail":
			result[event.ImportPath] = "fail"
		case "output", "build-output":
			text := colour.ReplaceAllString(event.Output, "")
			said[event.ImportPath+name] += text
			if ran := specRan.FindStringSubmatch(text); ran != nil {
				result[name+": specs that ran: "+ran[1]] = "pass"
			}
			if bad := badSpec.FindStringSubmatch(text); bad != nil {
				result[name+": "+bad[1]] = "fail"
			}
		}
	}
	return result, said
}

// testOf returns the package and test of a name.
func testOf(name string) string {
	test, _, _ := strings.Cut(name, ": ")
	return test
}

// failed returns the names that failed by themselves, not because of a subtest, and are not
// excused, sorted.
func (o outcomes) failed(excused map[string]string) []string {
	var all []string
	for name, outcome := range o {
		if outcome == "fail" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return isBelow(name, excused) || slices.ContainsFunc(all, func(other string) bool {
			rest, below := strings.CutPrefix(other, name)
			return below && rest != "" && strings.Contains(" /:", rest[:1])
		})
	})
}

// others returns the names that did not fail, with their outcomes and without the excused ones,
// sorted.
func (o outcomes) others(excused map[string]string) []string {
	var names []string
	for name, outcome := range o {
		if outcome != "fail" && !isBelow(name, excused) && !isAbove(name, excused) {
			names = append(names, name+" "+outcome)
		}
	}
	slices.Sort(names)
	return names
}

// isBelow reports whether name is excused.
func isBelow(name string, excused map[string]string) bool {
	for excuse := range excused {
		if strings.HasPrefix(name, excuse) {
			return true
		}
	}
	return false
}

// isAbove reports whether name fails if an excused test fails.
func isAbove(name string, excused map[string]string) bool {
	for excuse := range excused {
		if strings.HasPrefix(excuse, name) {
			return true
		}
	}
	return false
}

// A failure belongs to the innermost test: a subtest, or one of Ginkgo's specs.
func TestOutcomes(t *testing.T) {
	result, said := read([]byte(`
{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA/y"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestSuite","Output":"  \u001b[38;5;9m[FAIL]\u001b[0m A thing \u001b[1m[It] works\u001b[0m\n"}
{"Action":"output","Package":"p","Test":"TestSuite","Output":"\u001b[1mRan 7 of 9 Specs in 1.2 seconds\u001b[0m\n"}
{"Action":"fail","Package":"p","Test":"TestSuite"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
{"ImportPath":"q [q.test]","Action":"build-output","Output":"does not compile\n"}
{"ImportPath":"q [q.test]","Action":"build-fail"}
{"Action":"fail","Package":"q"}
`))
	assert.Equal(t, []string{"p TestA/y", "p TestSuite: A thing [It] works", "q [q.test]"},
		result.failed(nil))
	assert.Equal(t, []string{"p TestA/x pass", "p TestB skip",
		"p TestSuite: specs that ran: 7 pass"}, result.others(nil))
	assert.Equal(t, "=== RUN   TestA\n", said["p TestA"])
	assert.Equal(t, "does not compile\n", said["q [q.test]"])

	excused := map[string]string{"p TestA/y": "of its own", "p TestSuite: A thing": "of its own"}
	assert.Equal(t, []string{"q [q.test]"}, result.failed(excused))
}
