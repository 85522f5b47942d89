// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/informerstack/internal/tools/transcript"
)

// Each file of testdata/informer is a corner case of an informer, replayed on both queues and on
// client-go.
//
//	resync PERIOD          sets the informer's resync period; must be first
//	handler NAME [OPTION]  adds a handler; OPTION is resync=PERIOD, coalesce, split,
//	                       skip-unchanged, slow=PERIOD
//	remove NAME            removes it
//	start, stop            starts or stops the informer
//	create, update, delete, lose NAME   change the server; no watch reports a lost delete
//	elsewhere              changes an object outside of the collection
//	cut, expire, bookmark, down, up     affect the connection
//	wait PERIOD            lets time pass
//	saw [NAME]             prints the calls of the handlers since the last saw
//	store, synced, requests
func TestTranscripts(t *testing.T) {
	for _, file := range transcript.Glob(t, "../testdata/informer/*.txt") {
		for _, impl := range everyImpl {
			t.Run(file.Name+"/impl="+impl, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{t: t, impl: impl}
					defer func() { s.world().stop() }()
					file.Play(t, impl, s.exec)
				})
			})
		}
	}
}

type script struct {
	t        *testing.T
	impl     string
	options  worldOptions
	w        *world
	handlers map[string]*handler
	order    []string
}

func (s *script) world() *world {
	if s.w == nil {
		s.w = newWorld(s.t, s.impl, s.options)
		s.handlers = map[string]*handler{}
	}
	return s.w
}

func (s *script) exec(cmd transcript.Command) string {
	arg := cmd.Arg(0)
	if cmd.Name == "resync" {
		s.options.resync = s.duration(arg)
		return ""
	}
	w := s.world()
	switch cmd.Name {
	case "handler":
		return s.addHandler(arg, cmd.Args[1:])
	case "remove":
		return errText(w.informer.removeHandler(s.handlers[arg].registration))
	case "start":
		w.start()
	case "stop":
		w.stop()
	case "create":
		w.create(arg)
	case "update":
		w.update(arg)
	case "delete":
		w.delete(arg)
	case "lose":
		w.loseDelete(arg)
	case "cut":
		w.cutWatch()
	case "expire":
		w.expireWatch()
	case "elsewhere":
		w.server.elsewhere()
	case "bookmark":
		w.server.bookmark()
		w.settle()
	case "down":
		w.server.fail(errors.New("connection lost"))
	case "up":
		w.server.fail(nil)
	case "wait":
		w.after(s.duration(arg))
	default:
		return s.show(cmd)
	}
	return ""
}

func (s *script) show(cmd transcript.Command) string {
	w := s.world()
	switch cmd.Name {
	case "saw":
		var out []string
		for _, name := range s.order {
			if arg := cmd.Arg(0); arg == "" || arg == name {
				out = append(out,
					strings.TrimRight(name+": "+strings.Join(s.handlers[name].take(), ", "), " "))
			}
		}
		return strings.Join(out, "\n")
	case "store":
		stored := strings.Join(w.stored(), " ")
		return strings.TrimRight(stored+" at "+w.informer.LastSyncResourceVersion(), " ")
	case "synced":
		out := fmt.Sprintf("informer: %t", w.informer.HasSynced())
		for _, name := range s.order {
			out += fmt.Sprintf(" %s: %t", name, s.handlers[name].HasSynced())
		}
		return out
	case "requests":
		lists, watches := w.server.requests()
		return fmt.Sprintf("%d LIST, %d WATCH", lists, watches)
	}
	s.t.Fatalf("unknown command %q", cmd.Line)
	return ""
}

func (s *script) addHandler(name string, options []string) string {
	var o HandlerOptions
	r := newRecorder()
	for _, option := range options {
		word, value, _ := strings.Cut(option, "=")
		switch word {
		case "resync":
			period := s.duration(value)
			o.ResyncPeriod = &period
		case "slow":
			r.slow = s.duration(value)
		case "coalesce":
			o.Coalesce = true
		case "split":
			o.SplitRecreated = true
		case "skip-unchanged":
			o.SkipUnchanged = true
		default:
			s.t.Fatalf("unknown option %q", option)
		}
	}
	registration, err := s.w.informer.addHandler(r, o)
	if err != nil {
		return "error: it has stopped already"
	}
	s.handlers[name] = &handler{recorder: r, world: s.w, registration: registration}
	s.order = append(s.order, name)
	synctest.Wait()
	return ""
}

func (s *script) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return "error: " + err.Error()
}
