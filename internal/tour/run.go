// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// result is the outcome of a test: pass, fail or skip, or "" if it did not end.
type result struct {
	outcome string
	printed []string
}

// runPiece runs stories of one piece. A failing story is not an error.
func runPiece(piece string, stories []story) (map[string]result, error) {
	var names []string
	for _, s := range stories {
		names = append(names, s.name)
	}
	pattern := "^(" + strings.Join(names, "|") + ")$"
	cmd := exec.Command("go", "test", "-json", "-count=1", "-run", pattern, "./"+piece)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	results := parse(bytes.NewReader(out))
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && len(results) > 0) {
		return nil, fmt.Errorf("go test: %w\n%s", err, out)
	}
	return results, nil
}

// frame matches the lines that "go test -v" prints around a test, and log lines of the code.
var frame = regexp.MustCompile(`^ *(=== |--- |PASS$|[IWEF]\d{4} )`)

// parse reads the events of "go test -json". The lines of a subtest are added to its test, under
// its name.
func parse(events io.Reader) map[string]result {
	results := map[string]result{}
	subtest := ""
	for lines := bufio.NewScanner(events); lines.Scan(); {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" {
			continue // of the build, or of the package
		}
		name, sub, _ := strings.Cut(event.Test, "/")
		r := results[name]
		switch event.Action {
		case "output":
			if line := strings.TrimRight(event.Output, "\n"); !frame.MatchString(line) {
				if sub != "" && event.Test != subtest {
					r.printed = append(r.printed, sub+":")
				}
				subtest = event.Test
				r.printed = append(r.printed, strings.TrimPrefix(line, "    "))
			}
		case "pass", "fail", "skip":
			if sub == "" {
				r.outcome = event.Action
			}
		}
		results[name] = r
	}
	return results
}
