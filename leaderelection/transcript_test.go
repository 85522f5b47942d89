// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/transcript"
)

// Where time depends on chance, as that between client-go's candidates' tries does, a transcript is
// ours alone.
var oursAlone = []string{"candidates", "pause", "rejoin", "lostanswers"}

func TestTranscripts(t *testing.T) {
	for _, file := range transcript.Glob(t, "../testdata/leaderelection/*.txt") {
		for _, impl := range []string{transcript.Ours, "client-go"} {
			if impl != transcript.Ours && slices.Contains(oursAlone, file.Name) {
				continue
			}
			t.Run(file.Name+"/impl="+impl, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{w: newWorld(t, impl), named: map[string]*candidate{}}
					file.Play(t, impl, s.exec)
					s.w.end()
				})
			})
		}
	}
}

// script is the world that a transcript's commands act on. After each command it prints what has
// happened.
type script struct {
	w     *world
	named map[string]*candidate
}

func (s *script) exec(cmd transcript.Command) string {
	out := s.do(cmd)
	return strings.Join(append(s.w.take(), out...), "\n")
}

func (s *script) do(cmd transcript.Command) (out []string) {
	c := s.named[cmd.Arg(0)]
	switch cmd.Name {
	case "candidate": // candidate NAME [OPTION]...
		s.candidate(cmd.Arg(0), cmd.Args[1:])
	case "work": // work NAME takes DURATION
		c.works(s.duration(cmd.Arg(2)))
	case "run":
		c.runs()
	case "stop":
		c.stop()
	case "api": // api NAME WEATHER
		c.api(cmd.Arg(1))
	case "pause":
		c.pause()
	case "resume":
		c.resume()
	case "clock": // clock NAME DURATION: its wall clock is set forward
		c.step(s.duration(cmd.Arg(1)))
	case "suspend": // suspend NAME DURATION: its machine was suspended until now
		c.sleeps(s.duration(cmd.Arg(1)))
	case "after":
		s.w.after(s.duration(cmd.Arg(0)))
	case "other": // other takes|clears|deletes|touches
		s.other(cmd.Arg(0))
	case "leads":
		out = append(out, fmt.Sprintf("%s leads: %v", cmd.Arg(0), c.isLeader()))
	case "status":
		st := c.Status()
		token := "none"
		if st.Token != (FencingToken{}) {
			token = st.Token.String()
		}
		out = append(out, fmt.Sprintf("%s is %s, leader %q, token %s, slack %v, failures %d",
			c.name, st.Phase, st.Leader, token, st.Slack, st.ConsecutiveFailures))
	case "record":
		r := s.w.shelf.get()
		out = append(out, fmt.Sprintf("holder %q, %d s, acquired %v, renewed %v, transitions %d",
			r.HolderIdentity, r.LeaseDurationSeconds, s.when(r.AcquireTime.Time),
			s.when(r.RenewTime.Time), r.LeaderTransitions))
	default:
		require.Fail(s.w.t, "unknown command", cmd.Line)
	}
	synctest.Wait()
	return out
}

func (s *script) when(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Sub(s.w.start).Truncate(time.Millisecond).String()
}

func (s *script) candidate(name string, options []string) {
	known := map[string]func(*LeaderElectionConfig){
		"release": releasing, "abandon": abandoning, "always": always, "rejoin": rejoining,
		"coordinated": coordinated,
	}
	var changes []func(*LeaderElectionConfig)
	for _, option := range options {
		require.Contains(s.w.t, known, option)
		changes = append(changes, known[option])
	}
	s.named[name] = s.w.candidate(name, changes...).recordsEvents()
}

func (s *script) other(does string) {
	record := s.w.shelf.get()
	switch does {
	case "takes":
		s.w.takes("other")
		return
	case "deletes":
		s.w.shelf.set(nil)
		return
	case "clears":
		record.HolderIdentity = ""
	case "touches":
	case "prefers":
		record.PreferredHolder = "other"
	case "coordinates":
		record = coordinatedLease
	default:
		require.Fail(s.w.t, "unknown", does)
	}
	s.w.shelf.set(&record)
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(s.w.t, err)
	return d
}
