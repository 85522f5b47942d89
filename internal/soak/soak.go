// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/informerstack/apitest"
)

// load is the work of a run.
type load struct {
	Programs   []string
	Names      int // of objects; one in deleteEvery+1 does not exist
	Rate       int // changes per second
	Duration   time.Duration
	FaultEvery time.Duration
	Patience   time.Duration // for the first sync, and for the last changes after the load
}

// rows is the number of samples of a run.
const rows = 60

// run is one load on one server.
type run struct {
	load
	server   *apitest.Server
	writer   *writer
	ledger   *ledger
	children []*child
	results  []*result // of each child
	began    time.Time // the load
}

// soak runs the load, and reports the progress to out.
func soak(l load, out io.Writer) ([]*result, error) {
	r := &run{load: l, ledger: newLedger(l.Names),
		server: apitest.NewServer(apitest.Options{BookmarkInterval: 10 * time.Second})}
	r.writer = &writer{server: r.server, ledger: r.ledger, random: rand.New(rand.NewPCG(1, 1))}
	if err := r.writer.fill(); err != nil {
		return nil, err
	}
	if err := r.server.Start(); err != nil {
		return nil, err
	}
	defer r.server.Close()
	for _, program := range l.Programs {
		c, err := startChild(program, r.server.URL, l.Names)
		if err != nil {
			return nil, err
		}
		defer c.close()
		r.children = append(r.children, c)
		r.results = append(r.results, &result{program: program, load: l})
	}
	for _, phase := range []func(io.Writer) error{r.sync, r.work, r.settle, r.stop} {
		if err := phase(out); err != nil {
			return nil, err
		}
	}
	return r.results, nil
}

// sync starts the programs, and waits until each handler has the initial objects.
func (r *run) sync(out io.Writer) error {
	for i, c := range r.children {
		s, err := c.sample("/sample")
		if err != nil {
			return err
		}
		r.results[i].before = s
		if _, err := c.ask("/start"); err != nil {
			return err
		}
	}
	if err := r.wait(func(_ int, missing [handlerCount]int) bool {
		return total(missing) == 0
	}); err != nil {
		return err
	}
	for i, c := range r.children {
		s, err := c.sample("/sample?collect")
		if err != nil {
			return err
		}
		if !s.Synced {
			return fmt.Errorf("%s has not synced", c.name)
		}
		r.results[i].synced = s
		c.total = counts{}
		fmt.Fprintf(out, "%s has synced: %s\n", c.name, describe(s))
	}
	return nil
}

// work makes changes and faults, and samples the programs.
func (r *run) work(out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.Duration)
	defer cancel()
	r.began = time.Now()
	r.writer.writes.Store(0)
	var busy sync.WaitGroup
	errs := make(chan error, 3)
	busy.Go(func() { errs <- r.writer.run(ctx, r.Rate) })
	busy.Go(func() { errs <- trouble(ctx, r.server.Faults(), r.FaultEvery) })
	busy.Go(func() { errs <- r.block(ctx) })
	var failed error
	for pause(ctx, r.Duration/rows) && failed == nil {
		failed = r.observe(out)
	}
	if failed != nil {
		cancel()
	}
	busy.Wait()
	close(errs)
	for err := range errs {
		failed = errors.Join(failed, err)
	}
	return failed
}

// block stops the handlers that block, from the fifth to the half of the duration.
func (r *run) block(ctx context.Context) error {
	pause(ctx, r.Duration/5)
	var failed error
	for _, path := range []string{"/block", "/unblock"} {
		for _, c := range r.children {
			_, err := c.ask(path)
			failed = errors.Join(failed, err)
		}
		pause(ctx, r.Duration*3/10)
	}
	return failed
}

// observe adds a row to each result.
func (r *run) observe(out io.Writer) error {
	asked := r.server.Requests(requests)
	r.server.ForgetRequests()
	for i, c := range r.children {
		before, at := r.ledger.snapshot(), time.Now()
		marks, err := c.marks()
		if err != nil {
			return err
		}
		after := r.ledger.snapshot()
		var behind lag
		for h, got := range marks {
			if h != slow && h != blocking {
				behind.compare(before, after, got, at)
			}
		}
		s, err := c.sample("/sample")
		if err != nil {
			return err
		}
		if s.Ended {
			return fmt.Errorf("%s has ended: %s", c.name, s.Error)
		}
		row := newRow(time.Since(r.began), r.writer.writes.Load(), s, behind)
		row.countRequests(c.name, asked)
		r.results[i].rows = append(r.results[i].rows, row)
		fmt.Fprintf(out, "%-9s %s\n", c.name, row)
	}
	return nil
}

// settle waits until each handler has the last state of every object. The states that do not come
// are lost.
func (r *run) settle(out io.Writer) error {
	r.server.Faults().Clear()
	began := time.Now()
	err := r.wait(func(i int, missing [handlerCount]int) bool {
		r.results[i].lost = missing
		if total(missing) == 0 {
			return true
		}
		r.results[i].settled = time.Since(began)
		return false
	})
	if err != nil && !errors.Is(err, errImpatient) {
		return err
	}
	for i, c := range r.children {
		if r.results[i].after, err = c.sample("/sample?collect"); err != nil {
			return err
		}
		r.results[i].writes, r.results[i].latency = r.writer.writes.Load(), c.total
		fmt.Fprintf(out, "%s has settled after %.1fs: %s\n", c.name,
			r.results[i].settled.Seconds(), describe(r.results[i].after))
	}
	return nil
}

// stop ends the programs, and counts what they leave.
func (r *run) stop(io.Writer) error {
	for i, c := range r.children {
		if _, err := c.ask("/stop"); err != nil {
			return err
		}
		s, err := c.sample("/sample?collect")
		if err != nil {
			return err
		}
		if s.Error != "" {
			return fmt.Errorf("%s: %s", c.name, s.Error)
		}
		r.results[i].stopped = s
	}
	return nil
}

var errImpatient = errors.New("some handlers do not have the last states")

// wait asks every second for the marks of each program, until done has returned true for it. done
// gets the number of objects whose last state each handler does not have.
func (r *run) wait(done func(i int, missing [handlerCount]int) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.Patience)
	defer cancel()
	for left := len(r.children); left > 0; {
		if !pause(ctx, time.Second) {
			return errImpatient
		}
		left = 0
		want := r.ledger.snapshot()
		for i, c := range r.children {
			marks, err := c.marks()
			if err != nil {
				return err
			}
			var lacking [handlerCount]int
			for h, got := range marks {
				lacking[h] = missing(want, got)
			}
			if !done(i, lacking) {
				left++
			}
		}
	}
	return nil
}

func total(missing [handlerCount]int) int {
	sum := 0
	for _, n := range missing {
		sum += n
	}
	return sum
}
