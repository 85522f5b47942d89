// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// debugger asks a process for answers.
type debugger struct {
	t       *testing.T
	command string
	link    string
}

var linkOfDevtools = regexp.MustCompile(`devtools: (http://\S+)`)

// newDebugger begins to ask a process, which records from now on. log is that of a process.
func newDebugger(t *testing.T, process interface{ Log() ([]byte, error) }) *debugger {
	t.Helper()
	command, err := buildInformerstack()
	require.NoError(t, err)
	d := &debugger{t: t, command: command}
	require.Eventually(t, func() bool {
		log, err := process.Log()
		match := linkOfDevtools.FindSubmatch(log)
		if err != nil || match == nil {
			return false
		}
		d.link = string(match[1])
		return true
	}, patience, 50*time.Millisecond)
	d.ask()
	return d
}

func (d *debugger) ask(args ...string) string {
	command := exec.CommandContext(d.t.Context(), d.command,
		append([]string{"devtools"}, args...)...)
	command.Env = append(os.Environ(), "INFORMERSTACK_LINK="+d.link)
	out, err := command.CombinedOutput()
	if err != nil {
		return err.Error() + string(out)
	}
	return string(out)
}

// step is one of the things that happen to a program W.
type step[W any] struct {
	name string
	run  func(W)
}

// play runs steps in their order until one fails, each with its own T in all that in sets.
func play[W any](t *testing.T, w W, in func(*testing.T), steps []step[W]) {
	defer in(t)
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) {
			in(t)
			s.run(w)
		}) {
			return
		}
	}
}

// define creates the CustomResourceDefinition in a file.
func define(t *testing.T, servers *cluster.Cluster, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	fixture.Define(t, servers.Config(cluster.AdminToken), text)
}

// answers waits until the answer about a key, or everything if key is "", matches all wants.
func (d *debugger) answers(key string, wants ...string) (answer string) {
	d.t.Helper()
	var args []string
	if key != "" {
		args = []string{"--why", key}
	}
	if !assert.Eventually(d.t, func() bool {
		answer = d.ask(args...)
		return !slices.ContainsFunc(wants, func(want string) bool {
			return !regexp.MustCompile(`(?s)` + want).MatchString(answer)
		})
	}, patience, 200*time.Millisecond) {
		d.t.Logf("want %s\nhave %s", strings.Join(wants, "\nand "), answer)
	}
	return answer
}

// A healthy program is watched for so long, with a change of an object before each look.
const (
	healthyFor = 2 * time.Minute
	healthyGap = 2 * time.Second
)

var findingLine = regexp.MustCompile(`(?m)^finding: .*`)

// findsNothing requires that a program which works on changes has no finding.
func (d *debugger) findsNothing(change func(n int)) {
	d.t.Helper()
	looks := time.NewTicker(healthyGap)
	defer looks.Stop()
	n := 0
	for start := time.Now(); time.Since(start) < healthyFor; n++ {
		change(n)
		<-looks.C
		require.Empty(d.t, findingLine.FindAllString(d.ask(), -1), "look %d", n)
	}
	d.t.Logf("no finding in %s, in %d looks", healthyFor, n)
}
