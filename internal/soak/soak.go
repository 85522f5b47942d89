// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"example.com/informerstack/apitest"
)

// load is the work of a run.
type load struct {
	Program    string
	Names      int // of objects; one in deleteEvery+1 does not exist
	Rate       int // changes per second
	Duration   time.Duration
	FaultEvery time.Duration
	Patience   time.Duration // for the next state, in the first sync and after the load
}

// rowCount is the number of samples of a run.
const rowCount = 60

// run is one load on one program.
type run struct {
	load
	server *apitest.Server
	writer *writer
	ledger *ledger
	child  *child
	began  time.Time // the load
	result
}

// soak runs the load, and reports the progress to out.
func soak(l load, out io.Writer) (*result, error) {
	r := &run{load: l, ledger: newLedger(l.Names), result: result{load: l},
		server: apitest.NewServer(apitest.Options{BookmarkInterval: 10 * time.Second})}
	r.writer = &writer{server: r.server, ledger: r.ledger, random: rand.New(rand.NewPCG(1, 1))}
	if err := r.writer.fill(); err != nil {
		return nil, err
	}
	if err := r.server.Start(); err != nil {
		return nil, err
	}
	defer r.server.Close()
	var err error
	if r.child, err = startChild(l.Program, r.server.URL, l.Names); err != nil {
		return nil, err
	}
	defer r.child.close()
	for _, phase := range []func(io.Writer) error{r.sync, r.work, r.settle, r.stop} {
		if err := phase(out); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Program, err)
		}
	}
	return &r.result, nil
}

// sync starts the program, and waits until each handler has the initial objects.
func (r *run) sync(out io.Writer) error {
	var err error
	if r.before, err = r.child.sample("/sample"); err != nil {
		return err
	}
	if _, err := r.child.ask("/start"); err != nil {
		return err
	}
	err = r.wait(func(missing [handlerCount]int) bool { return total(missing) == 0 })
	if err != nil {
		return err
	}
	r.synced, err = r.child.sample("/sample?collect")
	fmt.Fprintf(out, "%s has synced: %s\n", r.Program, describe(r.synced))
	return err
}

// work makes changes and faults, and samples the program.
func (r *run) work(out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.Duration)
	defer cancel()
	r.began = time.Now()
	r.writer.writes.Store(0)
	var busy sync.WaitGroup
	errs := make(chan error, 3)
	busy.Go(func() { errs <- r.writer.run(ctx, r.Rate) })
	busy.Go(func() { errs <- trouble(ctx, r.server.Faults(), r.FaultEvery, r.listed) })
	busy.Go(func() { errs <- r.block(ctx) })
	var failed error
	for pause(ctx, r.Duration/rowCount) && failed == nil {
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

// listed waits until a handler has a state that was written after the call.
func (r *run) listed(ctx context.Context) error {
	want, err := strconv.ParseUint(r.server.ResourceVersion(), 10, 64)
	for err == nil && pause(ctx, time.Second) {
		var body []byte
		if body, err = r.child.ask("/newest"); err != nil {
			return err
		}
		var newest uint64
		if newest, err = strconv.ParseUint(string(body), 10, 64); newest >= want {
			return err
		}
	}
	return err
}

// block stops the handler that blocks, from the fifth to the half of the duration.
func (r *run) block(ctx context.Context) error {
	pause(ctx, r.Duration/5)
	_, err := r.child.ask("/block")
	pause(ctx, r.Duration*3/10)
	_, unblocked := r.child.ask("/unblock")
	return errors.Join(err, unblocked)
}

// observe adds a row to the result.
func (r *run) observe(out io.Writer) error {
	before, at := r.ledger.snapshot(), time.Now()
	marks, err := r.child.marks()
	if err != nil {
		return err
	}
	after := r.ledger.snapshot()
	var behind [handlerCount]lag
	for h, got := range marks {
		behind[h] = compare(before, after, got, at)
	}
	s, err := r.child.sample("/sample")
	if err != nil {
		return err
	}
	if s.Ended {
		return fmt.Errorf("it has ended: %s", s.Error)
	}
	r.latency.merge(s.Latency)
	row := newRow(time.Since(r.began), r.writer.writes.Load(), s, behind)
	row.countRequests(r.server.Requests(requests))
	r.server.ForgetRequests()
	r.rows = append(r.rows, row)
	fmt.Fprintf(out, "%s\n", row)
	return nil
}

// settle waits until each handler has the last state of every object. The states that do not come
// are lost.
func (r *run) settle(out io.Writer) error {
	r.server.Faults().Clear()
	began := time.Now()
	err := r.wait(func(missing [handlerCount]int) bool {
		r.lost = missing
		if total(missing) > missing[slow] {
			r.settled = time.Since(began)
		}
		return total(missing) == 0
	})
	if err != nil && !errors.Is(err, errImpatient) {
		return err
	}
	r.after, err = r.child.sample("/sample?collect")
	r.latency.merge(r.after.Latency)
	r.writes = r.writer.writes.Load()
	fmt.Fprintf(out, "%s has settled: %s\n", r.Program, describe(r.after))
	return err
}

// stop ends the program, and samples what it leaves.
func (r *run) stop(io.Writer) error {
	if _, err := r.child.ask("/stop"); err != nil {
		return err
	}
	var err error
	r.stopped, err = r.child.sample("/sample?collect")
	if r.stopped.Error != "" {
		return errors.New(r.stopped.Error)
	}
	return err
}

var errImpatient = errors.New("some handlers do not have the last states")

// wait asks every second for the marks of the program until done returns true for them, or nothing
// has changed for the time Patience. done gets the number of objects whose last state each handler
// does not have.
func (r *run) wait(done func(missing [handlerCount]int) bool) error {
	var last [handlerCount]int
	for since := time.Now(); time.Since(since) < r.Patience; {
		pause(context.Background(), time.Second)
		marks, err := r.child.marks()
		if err != nil {
			return err
		}
		var lacking [handlerCount]int
		want := r.ledger.snapshot()
		for h, got := range marks {
			lacking[h] = missing(want, got)
		}
		if done(lacking) {
			return nil
		}
		if lacking != last {
			last, since = lacking, time.Now()
		}
	}
	return errImpatient
}

func total(missing [handlerCount]int) int {
	sum := 0
	for _, n := range missing {
		sum += n
	}
	return sum
}
