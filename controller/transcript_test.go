// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/internal/tools/transcript"
)

// The transcripts run over our workqueue and over client-go's.
func TestTranscripts(t *testing.T) {
	for _, file := range transcript.Glob(t, "../testdata/controller/*.txt") {
		for _, impl := range []string{transcript.Ours, "client-go"} {
			t.Run(file.Name+"/queue="+impl, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{t: t, impl: impl}
					file.Play(t, impl, s.exec)
					s.w.stop()
				})
			})
		}
	}
}

// script is the world that a transcript's commands act on. After each command it prints the calls
// that ended meanwhile.
type script struct {
	t    *testing.T
	impl string
	w    *world
}

func (s *script) exec(cmd transcript.Command) string {
	var out []string
	if cmd.Name == "controller" {
		s.controller(cmd.Args)
	} else {
		out = s.do(cmd)
	}
	saw, at := s.w.takeSaw()
	for i := range saw {
		out = append(out, fmt.Sprintf("%v %s", at[i], saw[i]))
	}
	return strings.Join(out, "\n")
}

func (s *script) do(cmd transcript.Command) (out []string) {
	w, letters := s.w, s.w.c.DeadLetters()
	switch cmd.Name {
	case "run":
		w.run()
	case "answers": // answers KEY ANSWER[,ANSWER]...
		w.answers(cmd.Arg(0), strings.Split(strings.Join(cmd.Args[1:], " "), ", ")...)
	case "change":
		w.change(cmd.Args...)
	case "resync":
		w.c.Resync(cmd.Arg(0))
	case "add-after":
		w.c.Queue().AddAfter(cmd.Arg(0), s.duration(cmd.Arg(1)))
	case "forget":
		w.c.Forget(cmd.Arg(0))
	case "release":
		w.release(cmd.Arg(0))
	case "after":
		w.after(s.duration(cmd.Arg(0)))
	case "letters":
		out = append(out, w.letters()...)
	case "replay":
		out = append(out, fmt.Sprint(letters.Replay(cmd.Arg(0))))
	case "discard":
		out = append(out, fmt.Sprint(letters.Discard(cmd.Arg(0))))
	case "limiter":
		key := cmd.Arg(0)
		out = append(out, fmt.Sprintf("%s: %d requeues", key, w.c.queue.NumRequeues(key)))
	case "state":
		s := w.c.Snapshot()
		out = append(out, fmt.Sprintf("%s, %d queued, %d running, %d failing, %d given up",
			s.Phase, s.Queued, len(s.Running), len(s.Failing), s.DeadLetters))
	case "stop":
		w.cancel()
	default:
		require.Fail(s.t, "unknown command", cmd.Line)
	}
	w.settle()
	return out
}

// controller starts a new world: controller [OPTION=VALUE]...
func (s *script) controller(args []string) {
	if s.w != nil {
		s.w.stop()
	}
	var opts Options[string]
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "workers":
			opts.Workers = s.number(value)
		case "maxAttempts":
			opts.MaxAttempts = s.number(value)
		case "capacity":
			opts.DeadLetterCapacity = s.number(value)
		case "timeout":
			opts.ReconcileTimeout = s.duration(value)
		case "grace":
			opts.GracePeriod = s.duration(value)
		case "drain":
			opts.Drain = true
		case "buryPanics":
			opts.Panic = DeadLetterOnPanic
		default:
			require.Fail(s.t, "unknown option", arg)
		}
	}
	if s.impl != transcript.Ours {
		opts.NewQueue = clientGoQueue
	}
	s.w = newWorld(s.t, opts)
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	return d
}

func (s *script) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

// clientGoQueue is an Options.NewQueue.
func clientGoQueue(name string, limiter stringLimiter) stringQueue {
	return clientgo.NewTypedRateLimitingQueueWithConfig(limiter,
		clientgo.TypedRateLimitingQueueConfig[string]{Name: name})
}
