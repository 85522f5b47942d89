// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	plant    = flag.Bool("planted", false, "TestPlanted builds and runs every planted bug")
	breaking = flag.Int("breaks", 0, "the invariant that TestBreaks looks for, up to seed -seeds")
)

const root = "../../.."

// plantedBug is a patch of this repository that plants a bug. Its first two lines are
//
//	PIECE: BUG
//	Invariant N, found at seed N, within N seeds.
//
// The second line is "Found by TEST." if a simulation would need too many seeds: that test of the
// piece fails.
type plantedBug struct {
	name, piece, what string
	patch             string
	test              string // or the invariant below
	invariant         int
	found, within     uint64 // the seed that breaks the invariant, and the last one that may do so
}

func plantedBugs(t *testing.T) (bugs []plantedBug) {
	files, err := filepath.Glob("testdata/planted/*.patch")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		b := plantedBug{name: strings.TrimSuffix(filepath.Base(file), ".patch")}
		head := strings.SplitN(string(text), "\n", 3)
		b.piece, b.what, _ = strings.Cut(head[0], ": ")
		if test, ok := strings.CutPrefix(head[1], "Found by "); ok {
			b.test = strings.TrimSuffix(test, ".")
		} else {
			_, err = fmt.Sscanf(head[1], "Invariant %d, found at seed %d, within %d seeds.",
				&b.invariant, &b.found, &b.within)
			require.NoError(t, err, file)
		}
		b.patch = head[2]
		bugs = append(bugs, b)
	}
	return bugs
}

// apply returns the patched files. It does without git apply, so that the tests need no git.
func (b plantedBug) apply(t *testing.T) (files map[string]string) {
	files = map[string]string{}
	var file, before, after string
	replace := func() {
		if n := strings.Count(files[file], before); before != "" && n != 1 {
			t.Errorf("%s: %s has these lines %d times, want once:\n%s", b.name, file, n, before)
		}
		files[file] = strings.Replace(files[file], before, after, 1)
		before, after = "", ""
	}
	for line := range strings.Lines(b.patch) {
		switch {
		case strings.HasPrefix(line, "--- a/"):
			replace()
			file = strings.TrimSpace(line[len("--- a/"):])
			text, err := os.ReadFile(filepath.Join(root, file))
			require.NoError(t, err, b.name)
			files[file] = string(text)
		case strings.HasPrefix(line, "@@ "):
			replace()
		case strings.HasPrefix(line, "+++ "):
		case line[0] == '-':
			before += line[1:]
		case line[0] == '+':
			after += line[1:]
		case line[0] == ' ':
			before, after = before+line[1:], after+line[1:]
		}
	}
	replace()
	delete(files, "")
	return files
}

// simulation returns the folder of the package that simulates the piece, and the arguments that
// make its tests look for the bug.
func (b plantedBug) simulation() (folder string, args []string) {
	seeds := fmt.Sprint("-seeds=", b.within)
	switch {
	case b.test != "":
		return filepath.Join(root, b.piece), []string{"-test.run=^" + b.test + "$"}
	case b.piece == "shard": // has a simulation of its own
		return filepath.Join(root, "shard"), []string{"-test.run=^TestSimulation$", seeds}
	}
	return ".", []string{"-test.run=^TestBreaks$", "-test.v", fmt.Sprint("-breaks=", b.invariant),
		seeds}
}

// overlay writes the patched files into a folder, and a list of them for the go command.
func (b plantedBug) overlay(t *testing.T) (list string) {
	folder := t.TempDir()
	overlay := map[string]string{}
	for file, text := range b.apply(t) {
		from, err := filepath.Abs(filepath.Join(root, file))
		require.NoError(t, err)
		overlay[from] = filepath.Join(folder, strings.ReplaceAll(file, "/", "-"))
		require.NoError(t, os.WriteFile(overlay[from], []byte(text), 0o600))
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list = filepath.Join(folder, "overlay.json")
	require.NoError(t, os.WriteFile(list, text, 0o600))
	return list
}

// build compiles the simulation with the bug, and returns the binary.
func (b plantedBug) build(ctx context.Context, t *testing.T) (binary string) {
	binary = filepath.Join(t.TempDir(), "simulation.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w",
		"-overlay", b.overlay(t), "-o", binary, ".")
	build.Dir, _ = b.simulation()
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

// Each patch applies to the present source.
func TestPlanted_Applies(t *testing.T) {
	for _, b := range plantedBugs(t) {
		b.apply(t)
	}
}

// Each package compiles with its bug: a patch that does not proves nothing.
func TestPlanted_Compiles(t *testing.T) {
	if !*plant {
		t.Skip("needs -planted")
	}
	for _, b := range plantedBugs(t) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			build := []string{"build", "-overlay", b.overlay(t)}
			for file := range b.apply(t) {
				build = append(build, "./"+filepath.Dir(file))
			}
			slices.Sort(build[3:])
			command := exec.CommandContext(t.Context(), "go", append(build[:3:3],
				slices.Compact(build[3:])...)...)
			command.Dir = root
			out, err := command.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// The simulation finds each planted bug: in a build with the bug, one of the first seeds breaks the
// invariant that the bug's patch names.
func TestPlanted(t *testing.T) {
	if !*plant {
		t.Skip("needs -planted")
	}
	for _, b := range plantedBugs(t) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			_, args := b.simulation()
			out, err := exec.CommandContext(ctx, b.build(ctx, t), args...).CombinedOutput()
			switch {
			case b.test != "":
				require.Error(t, err)
				require.Contains(t, string(out), "--- FAIL: "+b.test)
			case b.piece == "shard": // its tests fail
				require.Error(t, err)
				require.Contains(t, string(out), fmt.Sprintf("I%d: ", b.invariant))
			default:
				require.NoError(t, err, "%s", out)
			}
			t.Logf("%s: %s", b.what, regexp.MustCompile(`seed[= ]\d.*`).Find(out))
		})
	}
}

// One of the seeds breaks the invariant that -breaks names: what TestPlanted runs in its builds.
func TestBreaks(t *testing.T) {
	if *breaking == 0 {
		t.Skip("TestPlanted runs this")
	}
	others := ""
	for n := uint64(1); n <= *seeds; n++ {
		all := run(t, generateContest(n)).violations
		for _, s := range scripts(n) {
			all = append(all, run(t, s).violations...)
		}
		all = append(all, run(t, compared(generatePages(n), comparable)).violations...)
		for _, v := range all {
			if v.invariant == *breaking {
				t.Logf("seed %d: %v", n, v)
				return
			}
			others += fmt.Sprintf("seed %d: %v\n", n, v)
		}
	}
	t.Errorf("no seed up to %d breaks invariant %d\n%s", *seeds, *breaking, others)
}
