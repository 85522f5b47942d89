// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// build compiles the tests of a package for the sandbox.
func build(t *testing.T, folder string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "test.wasm")
	command := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-o", binary, ".")
	command.Dir = folder
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// output runs a binary in a new sandbox.
func output(t *testing.T, schedule, tries uint64, args ...string) (code int, out string) {
	t.Helper()
	var buffer bytes.Buffer
	code, err := replay(t.Context(), &buffer, schedule, tries, args)
	if err != nil {
		t.Fatal(err)
	}
	return code, buffer.String()
}

// A schedule decides everything that differs between two runs of a program.
func TestSchedule(t *testing.T) {
	order := build(t, "testdata/order")
	code, found := output(t, 0, 200, order, "-test.v")
	if code != 1 || !strings.Contains(found, "an order that the test does not expect") {
		t.Fatalf("exit status %d, want a schedule that fails:\n%s", code, found)
	}
	last := regexp.MustCompile(`schedule (\d+): exit status 1`).FindStringSubmatch(found)
	n, err := strconv.ParseUint(last[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if _, again := output(t, n, 1, order, "-test.v"); again != found {
		t.Errorf("schedule %d:\n%s\nand then:\n%s", n, found, again)
	}
	_, other := output(t, n+1, 1, order, "-test.v")
	same := map[string]bool{}
	for line := range strings.Lines(found) {
		same[line] = true
	}
	for line := range strings.Lines(other) {
		if strings.Contains(line, "random") && same[line] {
			t.Errorf("schedules %d and %d have the same random numbers: %s", n, n+1, line)
		}
	}
}

// A seed of the simulation replays byte for byte.
func TestSimulation(t *testing.T) {
	simulation := build(t, "..")
	for _, seed := range []string{"7", "230", "1042"} {
		args := []string{simulation, "-test.v", "-test.timeout=0", "-test.run=^TestReplay$",
			"-seed=" + seed}
		code, story := output(t, 0, 1, args...)
		if code != 0 || !strings.Contains(story, "the story:") {
			t.Errorf("seed %s: exit status %d\n%s", seed, code, story)
		}
		if _, again := output(t, 0, 1, args...); again != story {
			t.Errorf("seed %s:\n%s\nand then:\n%s", seed, story, again)
		}
		if _, other := output(t, 1, 1, args...); script(other) != script(story) ||
			other == story {
			t.Errorf("seed %s: want the same script with another story:\n%s", seed, other)
		}
	}
}

// script is the part of an output before the story.
func script(out string) string {
	before, _, _ := strings.Cut(out, "the story:")
	return before
}

// Bad arguments are errors that name what is wrong.
func TestErrors(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.wasm")
	if err := os.WriteFile(broken, []byte("\x7fELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"want a binary": nil,
		"no such file":  {"missing.wasm"},
		"magic number":  {broken},
	} {
		code, err := replay(t.Context(), os.Stdout, 0, 1, args)
		if code != 2 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: exit status %d, error %v, want %q", args, code, err, want)
		}
	}
}
