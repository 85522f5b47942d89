// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/tools/transcript"
)

// The error matrix: what happens on each event, row by row, here and in client-go. The commands:
//
//	start [watchlist] [page=N] [resync=D] [internal=D]    run a reflector
//	list RV [NAME@RV...] [continue=TOKEN]                 answer the LIST that waits
//	list error NAME | panic | nil | table | nodes RV ...  fail it; NAME is a key of apiErrors
//	watch | watch error NAME | watch nil                  answer the WATCH that waits
//	added, modified, deleted NAME@RV                      send an event
//	bookmark RV [true|false]                              send a bookmark; the word is its
//	                                                      end-of-initial-events annotation
//	odd NAME@RV | node NAME@RV                            send an event of an unknown type or kind
//	error NAME                                            send an ERROR event
//	close                                                 end the watch
//	fail METHOD                                           make the store's next call fail
//	deaf                                                  requests ignore that they are cancelled
//	after D                                               let time pass
//	stop                                                  cancel the reflector
func TestTranscripts(t *testing.T) {
	for _, impl := range []string{transcript.Ours, "client-go"} {
		for _, f := range transcript.Glob(t, "../testdata/reflector/*.txt") {
			t.Run("impl="+impl+"/"+f.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newScript(t, impl)
					f.Play(t, impl, func(cmd transcript.Command) string {
						if cmd.Name == "start" {
							s.end()
							s = newScript(t, impl)
						}
						s.begin()
						s.exec(cmd)
						return strings.Join(s.take(), "\n")
					})
				})
			})
		}
	}
}

func (s *script) exec(cmd transcript.Command) {
	switch cmd.Name {
	case "start":
		s.configure(cmd.Args)
		s.start()
	case "list":
		s.execList(cmd)
	case "watch":
		switch cmd.Arg(0) {
		case "error":
			s.answerWatch(s.apiError(cmd.Arg(1)))
		case "nil":
			send(s.t, s.watches, watchAnswer{})
		default:
			s.answerWatch(nil)
		}
	case "added", "modified", "deleted":
		s.event(
			watch.Event{Type: watch.EventType(strings.ToUpper(cmd.Name)), Object: pod(cmd.Arg(0))},
		)
	case "odd":
		s.event(watch.Event{Type: "ODD", Object: pod(cmd.Arg(0))})
	case "node":
		s.event(watch.Event{Type: watch.Modified, Object: node(cmd.Arg(0))})
	case "bookmark":
		s.event(bookmark(cmd.Arg(0), cmd.Arg(1)))
	case "error":
		s.event(watch.Event{Type: watch.Error, Object: statusOf(s.apiError(cmd.Arg(0)))})
	case "close":
		close(s.open.events)
	case "fail":
		s.fail(cmd.Arg(0), errors.New("store failed"))
	case "deaf":
		s.deafen()
	case "after":
		d, err := time.ParseDuration(cmd.Arg(0))
		require.NoError(s.t, err)
		time.Sleep(d)
	case "stop":
		s.stop()
	default:
		s.t.Fatalf("unknown command %q", cmd.Line)
	}
}

func (s *script) configure(args []string) {
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		d, _ := time.ParseDuration(value)
		switch name {
		case "watchlist":
			s.streams()
		case "page":
			n, err := strconv.ParseInt(value, 10, 64)
			require.NoError(s.t, err)
			s.opts.WatchListPageSize = n
		case "resync":
			s.opts.ResyncPeriod = d
		case "internal":
			s.opts.MaxInternalErrorRetryDuration = d
		case "transform":
			s.opts.Transform = func(obj any) (any, error) {
				m := obj.(metav1.Object)
				s.print("transform %s@%s", m.GetName(), m.GetResourceVersion())
				if m.GetName() == value {
					return nil, errors.New("cannot transform")
				}
				return obj, nil
			}
		default:
			s.t.Fatalf("unknown option %q", arg)
		}
	}
}

func (s *script) execList(cmd transcript.Command) {
	switch cmd.Arg(0) {
	case "error":
		s.answerList(nil, s.apiError(cmd.Arg(1)))
	case "panic":
		s.panicNext = true
		s.answerList(nil, nil)
	case "nil":
		s.answerList(nil, nil)
	case "table":
		s.answerList(table(), nil)
	case "nodes":
		s.answerList(nodeList(cmd.Arg(1), cmd.Args[2:]...), nil)
	default:
		items, token := cmd.Args[1:], ""
		if n := len(items); n > 0 && strings.HasPrefix(items[n-1], "continue=") {
			token = strings.TrimPrefix(items[n-1], "continue=")
			items = items[:n-1]
		}
		s.answerList(podList(strings.Trim(cmd.Arg(0), `"`), token, items...), nil)
	}
}

func (s *script) apiError(name string) error {
	err, ok := apiErrors[name]
	require.True(s.t, ok, "no error %q", name)
	return err
}

// end stops the reflector and what it has left behind.
func (s *script) end() {
	s.stop()
	s.hear()
	s.take()
}
