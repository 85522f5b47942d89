// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/informerstack/internal/tools/transcript"
)

// Every rule of the two queues, on ours and on client-go. The commands are those of player.exec.
func TestTranscript(t *testing.T) {
	for _, file := range transcript.Glob(t, "../testdata/deltafifo/*.txt") {
		for _, impl := range []string{ours, clientGo} {
			t.Run(file.Name+"/impl="+impl, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &player{t: t, impl: impl}
					defer p.stop()
					file.Play(t, impl, p.play)
				})
			})
		}
	}
}

// player executes the commands of a transcript.
type player struct {
	t       *testing.T
	impl    string
	w       *world
	waiting chan string   // the result of a Pop that blocks
	holding chan struct{} // closed to let a held process function return
}

func (p *player) stop() {
	if p.holding != nil {
		close(p.holding)
	}
	if p.w != nil {
		p.w.queue.Close()
	}
}

// play executes a command, checks the laws, and reports a Pop that it woke.
func (p *player) play(cmd transcript.Command) string {
	out := p.exec(cmd)
	synctest.Wait()
	if p.holding == nil { // a queue may be locked while a process function runs
		p.w.laws(p.t)
	}
	if p.waiting != nil {
		select {
		case got := <-p.waiting:
			p.waiting = nil
			out = strings.TrimPrefix(out+"\nwoken: "+got, "\n")
		default:
		}
	}
	return out
}

func (p *player) exec(cmd transcript.Command) string {
	w := p.w
	switch cmd.Name {
	case "new": // new deltafifo|realfifo OPTION...
		p.stop()
		*p = player{t: p.t, impl: p.impl, w: newWorld(p.t, p.impl, parseKind(p.t, cmd.Args))}
	case "added", "updated", "deleted", "gone": // added KEY RV, or a word that has no key
		return describeError(w.send(op(cmd.Name, strings.Join(cmd.Args, "@"))))
	case "replace", "resync", "bookmark": // replace KEY@RV..., bookmark RV
		return describeError(w.send(op(cmd.Name, cmd.Args...)))
	case "known": // known KEY@RV...: sets the known objects
		clear(w.known.objs)
		for _, obj := range objects(cmd.Args...) {
			w.known.set(obj)
		}
	case "lookups": // lookups fail|miss|work
		w.known.failing, w.known.hiding = cmd.Arg(0) == "fail", cmd.Arg(0) == "miss"
	case "transform": // transform fails|loses|keeps KEY
		w.failing[cmd.Arg(1)], w.losing[cmd.Arg(1)] = cmd.Arg(0) == "fails", cmd.Arg(0) == "loses"
	case "pop":
		return p.wait(w.pop)
	case "batch":
		return p.wait(w.popBatch)
	case "pop-fails": // the process function returns an error
		return p.wait(func() string {
			got, err := w.queue.Pop(func(any, bool) error { return errors.New("process failed") })
			return fmt.Sprint(describe(got.(Deltas)), " ", describeError(err))
		})
	case "pop-holds": // the process function runs until release
		p.holding = make(chan struct{})
		return p.wait(func() string {
			_, err := w.queue.Pop(func(obj any, initial bool) error {
				<-p.holding
				return nil
			})
			return "released" + describeError(err)
		})
	case "release":
		close(p.holding)
		p.holding = nil
	case "synced?":
		return fmt.Sprint(w.queue.HasSynced())
	case "close":
		w.queue.Close()
	default:
		p.t.Fatalf("no command %q", cmd.Line)
	}
	return ""
}

// wait runs a Pop, which may block.
func (p *player) wait(pop func() string) string {
	p.waiting = make(chan string, 1)
	go func(done chan<- string) { done <- pop() }(p.waiting)
	synctest.Wait()
	select {
	case got := <-p.waiting:
		p.waiting = nil
		return got
	default:
		return "..."
	}
}

func parseKind(t *testing.T, words []string) kind {
	k := kind{real: words[0] == "realfifo"}
	for _, word := range words[1:] {
		switch word {
		case "known":
			k.known = true
		case "replaced":
			k.replaced = true
		case "transform":
			k.transform = true
		case "atomic":
			k.atomic = true
		case "unlock":
			k.unlock = true
		case "bookmarks":
			k.bookmarks = true
		default:
			t.Fatalf("no option %q", word)
		}
	}
	return k
}
