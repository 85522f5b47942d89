// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/transcript"
)

// The corners of the queue, on ours and on client-go's; testdata/workqueue/*.txt narrates them.
//
//	add a | after a 5s | limited a    ways in
//	get                               an item, "nothing" where a worker would sleep, or "shutdown"
//	done a | forget a
//	len | requeues a | sleep 5s
//	shutdown | drain                  drain prints when ShutDownWithDrain has returned
func TestTranscripts(t *testing.T) {
	for _, file := range transcript.Glob(t, "../testdata/workqueue/*.txt") {
		t.Run(file.Name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, impl string, q queue) {
				s := script{t: t, q: q}
				file.Play(t, impl, s.exec)
			})
		})
	}
}

type script struct {
	t        *testing.T
	q        queue
	draining chan struct{}
}

func (s *script) exec(cmd transcript.Command) string {
	out := s.run(cmd)
	after(0)
	checkLaws(s.t, s.q)
	select {
	case <-s.draining:
		s.draining = nil
		return strings.TrimPrefix(out+"\ndrained", "\n")
	default: // it still waits, or no call drains
		return out
	}
}

func (s *script) run(cmd transcript.Command) string {
	item := cmd.Arg(0)
	switch cmd.Name {
	case "add":
		s.q.Add(item)
	case "after":
		s.q.AddAfter(item, s.duration(cmd.Arg(1)))
	case "limited":
		s.q.AddRateLimited(item)
	case "get":
		return next(s.q)
	case "done":
		s.q.Done(item)
	case "forget":
		s.q.Forget(item)
	case "len":
		return fmt.Sprint(s.q.Len())
	case "requeues":
		return fmt.Sprint(s.q.NumRequeues(item))
	case "sleep":
		after(s.duration(item))
	case "shutdown":
		s.q.ShutDown()
	case "drain":
		draining := make(chan struct{})
		s.draining = draining
		go func() {
			s.q.ShutDownWithDrain()
			close(draining)
		}()
	default:
		s.t.Fatalf("unknown command %q", cmd.Line)
	}
	return ""
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(s.t, err)
	return d
}
