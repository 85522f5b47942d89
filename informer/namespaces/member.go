// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/reflector"
)

var (
	errRemoved          = errors.New("the namespace was removed")
	errLeftOut          = errors.New("the namespace is left out")
	errProcessingPanics = errors.New("processing a change panicked")
)

// member is one namespace of a Set, from the time when it is added until it is removed, or until it
// may not be read any more: a reflector, its part of the queue, and the Tracker of that part.
//
//	M1  a member that has listed is not left out
//	M2  decided is closed  <=>  it has handed over its first list, is or was left out, or has
//	    ended
type member struct {
	set       *Set
	namespace string
	tracker   *freshness.Tracker
	decided   chan struct{}
	decide    func() // closes decided, once

	// Set when it starts, under Set.changing.
	part   *deltafifo.Part
	cancel context.CancelFunc

	reflector atomic.Pointer[reflector.Reflector] // nil before the start

	mu        sync.Mutex // guards the fields below
	isListed  bool       // a list was handed over
	isLeftOut bool
	changed   chan struct{} // closed when isLeftOut changes

	// For the switch to a watch of the whole cluster; see branching.
	own      watch.Interface // the last watch that was opened, unless it is a branch
	watching time.Time       // since when; zero if no watch is followed
	hasEnded bool
	proved   time.Time // the store held everything of the namespace then; see held
}

func newMember(s *Set, namespace string) *member {
	decided := make(chan struct{})
	return &member{
		set: s, namespace: namespace, tracker: freshness.New(nil), decided: decided,
		decide:  sync.OnceFunc(func() { close(decided) }),
		changed: make(chan struct{}),
	}
}

// start returns the function that lists and watches the namespace until the member ends.
func (m *member) start(queue *deltafifo.Parts, r run, lw reflector.ListerWatcher) func() {
	ctx, cancel := context.WithCancel(r.ctx)
	m.cancel = cancel
	m.part = queue.Part(m.namespace, progress{m})
	options := r.options
	options.Name += " in namespace " + m.namespace
	observe := options.Observe
	options.Observe = func(t reflector.Transition) {
		m.observe(t)
		m.followed(t)
		if observe != nil {
			observe(t)
		}
	}
	m.reflector.Store(r.newReflector(lw, r.example, followed{view{m.part, m}, m.tracker}, options))
	return func() {
		defer cancel()
		m.reflector.Load().Run(ctx)
	}
}

// remove ends the member and deletes its objects.
func (m *member) remove() {
	m.stop(errRemoved)
	if m.part != nil {
		m.part.Remove()
	}
}

// stop ends the member. Waits for its versions fail with err.
func (m *member) stop(err error) {
	if m.cancel != nil {
		m.cancel()
	}
	m.tracker.Stop(err)
	m.decide()
	if c := m.set.cluster; c != nil {
		c.forget(m)
	}
}

// view is a part of the queue as the Store of the member's reflector.
type view struct {
	*deltafifo.Part
	member *member
}

func (v view) Replace(list []any, resourceVersion string) error {
	err := v.Part.Replace(list, resourceVersion)
	if err == nil {
		v.member.listed()
	}
	return err
}

// followed is the view, in which the reflector finds the Tracker.
type followed struct {
	view
	tracker *freshness.Tracker
}

func (f followed) Followed() (any, *freshness.Tracker) { return f.view, f.tracker }

// progress notifies the Tracker of a member. If a change cannot be stored, the member lists again.
type progress struct{ member *member }

func (p progress) Queued(items int) { p.member.tracker.Queued(items) }

func (p progress) Process(items, deltas int, process func() error) (err error) {
	err = errProcessingPanics
	defer func() {
		// After the Tracker has noted it: a list before that would not repair it. Without a
		// reflector, the item is from before the member, which will list.
		if r := p.member.reflector.Load(); err != nil && r != nil {
			r.Relist(err)
		}
	}()
	return p.member.tracker.Process(items, deltas, func() error {
		err := process()
		if err == nil {
			p.member.tracker.Stored(deltas)
		}
		return err
	})
}

// listed notes that a list was handed over. From now on the member counts.
func (m *member) listed() {
	m.leaveOut(false)
	m.mu.Lock()
	m.isListed = true
	m.mu.Unlock()
	m.decide()
}

// leaveOut changes whether the member counts.
func (m *member) leaveOut(isLeftOut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isLeftOut == m.isLeftOut {
		return
	}
	m.isLeftOut = isLeftOut
	close(m.changed)
	m.changed = make(chan struct{})
	if isLeftOut {
		m.decide()
	}
}

// state returns whether the member is left out, and a channel that closes when that changes.
func (m *member) state() (isLeftOut bool, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isLeftOut, m.changed
}

// observe looks for tolerated errors among the reflector's transitions.
func (m *member) observe(t reflector.Transition) {
	tolerate := m.set.options.Tolerate
	if t.Err == nil || tolerate == nil {
		return
	}
	isTolerated := tolerate(m.namespace, t.Err)
	m.mu.Lock()
	isListed := m.isListed
	m.mu.Unlock()
	switch {
	case !isListed:
		m.leaveOut(isTolerated)
	case isTolerated && t.From == reflector.Listing && apierrors.IsForbidden(t.Err):
		m.set.renew(m)
	}
}

// wait blocks until the store has every change of the namespace up to resourceVersion. It fails at
// once with errLeftOut or errRemoved if that is so.
func (m *member) wait(ctx context.Context, resourceVersion string) error {
	for {
		isLeftOut, changed := m.state()
		if isLeftOut {
			return errLeftOut
		}
		waitCtx, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-changed:
				cancel()
			case <-waitCtx.Done():
			}
		}()
		err := m.tracker.Await(waitCtx, resourceVersion)
		cancel()
		switch {
		case ctx.Err() != nil && err != nil:
			return context.Cause(ctx)
		case !errors.Is(err, context.Canceled): // of waitCtx
			return err
		}
	}
}

// err returns the error that keeps the member from listing or watching, or nil.
func (m *member) err() error {
	status := m.status()
	if status.ConsecutiveFailures == 0 {
		return nil
	}
	return m.failed(status.LastError)
}

func (m *member) failed(err error) error {
	return fmt.Errorf("namespace %q: %w", m.namespace, err)
}

// name is that of the reflector, once there is one.
func (m *member) name() string {
	if r := m.reflector.Load(); r != nil {
		return r.Name()
	}
	return "namespace " + m.namespace
}

// status is that of the reflector. While the member has a branch, what fails is the watch of the
// whole cluster.
func (m *member) status() reflector.Status {
	r := m.reflector.Load()
	if r == nil {
		return reflector.Status{}
	}
	status := r.Status()
	if c := m.set.cluster; c != nil && failure(status) == nil && c.hasBranch(m) {
		c.addFeed(&status)
	}
	return status
}
