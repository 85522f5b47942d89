// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/informerstack/realserver/either/answers"
)

// results is what one run of go test has found.
type results struct {
	took  time.Duration
	tests map[string]*result // by "PACKAGE TEST", or "PACKAGE" if it fails without a test
}

// result is that of a test.
type result struct {
	action  string                     // pass, fail or skip; "" if it has not ended
	answers map[string]map[string]bool // by request
}

// parse reads the output of go test -json.
func parse(r io.Reader) (results, error) {
	all := results{tests: map[string]*result{}}
	for decoder := json.NewDecoder(r); ; {
		var event struct{ Action, Package, Test, Key, Value string }
		switch err := decoder.Decode(&event); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, fmt.Errorf("read the output of go test: %w", err)
		}
		if event.Package == "" ||
			event.Test == "" && !all.failedAlone(event.Action, event.Package) {
			continue
		}
		name := strings.TrimSpace(event.Package + " " + event.Test)
		if all.tests[name] == nil {
			all.tests[name] = &result{answers: map[string]map[string]bool{}}
		}
		test := all.tests[name]
		switch event.Action {
		case "pass", "fail", "skip":
			test.action = event.Action
		case "attr":
			request, answer, ok := strings.Cut(event.Value, "\t")
			if event.Key != answers.Key || !ok {
				continue
			}
			if test.answers[request] == nil {
				test.answers[request] = map[string]bool{}
			}
			test.answers[request][answer] = true
		}
	}
}

// failedAlone reports whether a package fails without a test that does: it is not compiled, or ends
// outside its tests.
func (r results) failedAlone(action, name string) bool {
	for test, result := range r.tests {
		if strings.HasPrefix(test, name+" ") && result.action == "fail" {
			return false
		}
	}
	return action == "fail"
}

// report compares two runs.
type report struct{ memory, onReal results }

// ended describes how a test has ended.
func (r results) ended(name string) string {
	switch test := r.tests[name]; {
	case test == nil && strings.Contains(name, " "):
		return "did not run"
	case test == nil: // only a package that fails has an entry
		return "pass"
	case test.action == "":
		return "did not end"
	default:
		return test.action
	}
}

// names returns the names of all tests, in their order.
func (r *report) names() []string {
	names := maps.Clone(r.memory.tests)
	maps.Copy(names, r.onReal.tests)
	return slices.Sorted(maps.Keys(names))
}

func (r *report) testsDiffer() bool {
	return slices.ContainsFunc(r.names(),
		func(name string) bool { return r.memory.ended(name) != r.onReal.ended(name) })
}

// String returns the report, for people.
func (r *report) String() string {
	same := map[string]int{}
	var different, requests strings.Builder
	for _, name := range r.names() {
		memory, onReal := r.memory.ended(name), r.onReal.ended(name)
		if memory == onReal {
			same[memory]++
		} else {
			fmt.Fprintf(&different, "%s\n  apitest      %s\n  real server  %s\n", name, memory,
				onReal)
		}
		r.compareAnswers(&requests, name)
	}
	text := fmt.Sprintf("On both: %d tests pass, %d fail, %d are skipped. apitest took %.1fs, "+
		"a real server %.1fs, with compiling.\n", same["pass"], same["fail"], same["skip"],
		r.memory.took.Seconds(), r.onReal.took.Seconds())
	if different.Len() > 0 {
		text += "\nTests that end differently:\n\n" + different.String()
	}
	if requests.Len() > 0 {
		text += "\nRequests of both runs with different answers (a conflict may be chance):\n\n" +
			requests.String()
	}
	return text
}

// compareAnswers writes the requests of a test that both servers have got, and that they have
// answered differently.
func (r *report) compareAnswers(w io.Writer, name string) {
	memory, onReal := r.memory.tests[name], r.onReal.tests[name]
	if memory == nil || onReal == nil {
		return
	}
	for _, request := range slices.Sorted(maps.Keys(memory.answers)) {
		theirs, both := onReal.answers[request]
		if ours := memory.answers[request]; both && !maps.Equal(ours, theirs) {
			fmt.Fprintf(w, "%s: %s\n  apitest      %s\n  real server  %s\n", name, request,
				text(ours), text(theirs))
		}
	}
}

func text(answers map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(answers)), "; ")
}
