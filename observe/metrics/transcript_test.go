// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/transcript"
)

func TestTranscripts(t *testing.T) {
	for _, file := range transcript.Glob(t, "../../testdata/metrics/*.txt") {
		t.Run(file.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				defer func() { w.stop() }()
				file.Play(t, transcript.Ours, w.exec)
			})
		})
	}
}

// exec does one command of a transcript. Only scrape prints something.
func (w *world) exec(cmd transcript.Command) string {
	argument := cmd.Arg(0)
	duration := func() time.Duration {
		d, err := time.ParseDuration(argument)
		require.NoError(w.t, err)
		return d
	}
	switch cmd.Name {
	case "run":
		w.run(worldOptions{inOrder: argument == "in-order", streaming: cmd.Arg(1) == "streaming"})
	case "create":
		w.create(argument)
	case "update":
		w.update(argument)
	case "delete":
		w.delete(argument)
	case "expire":
		w.expireWatch()
	case "after":
		w.after(duration())
	case "handler-takes":
		w.delay = duration()
	case "fails":
		times, err := strconv.Atoi(cmd.Arg(1))
		require.NoError(w.t, err)
		w.failures["default/"+argument] = times
	case "stop":
		w.stop()
	case "scrape":
		return strings.Join(w.scrape(argument), "\n")
	default:
		w.t.Fatalf("no such command: %s", cmd.Name)
	}
	return ""
}
