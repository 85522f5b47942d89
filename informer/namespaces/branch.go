// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/reflector"
)

// branching is what lists and watches the namespace of a member, alone or by a branch of a feed.
type branching struct {
	reflector.ListerWatcher
	member *member
}

// IsWatchListSemanticsUnSupported implements reflector.WatchListRefuser.
func (l branching) IsWatchListSemanticsUnSupported() bool {
	refuser, ok := l.ListerWatcher.(reflector.WatchListRefuser)
	return ok && refuser.IsWatchListSemanticsUnSupported()
}

// ListStream implements reflector.StreamLister.
func (l branching) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	s := l.member.set
	if listwatch.IsQuestion(options) && s.cluster.hasBranch(l.member) {
		return metav1.ListMeta{}, errBranch
	}
	return reflector.ListPage(ctx, l.ListerWatcher, s.run.example, options, each)
}

// WatchWithContext opens the member's branch, if it has one that begins early enough, or else a
// watch of its own.
func (l branching) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	if f := l.member.set.cluster.feed.Load(); f != nil {
		if w := f.openBranch(l.member, options); w != nil {
			l.member.setOwn(nil)
			return w, nil
		}
	}
	w, err := l.ListerWatcher.WatchWithContext(ctx, options)
	if err == nil {
		l.member.setOwn(w)
	}
	return w, err
}

// branchWatch is a branch as the watch of a member.
type branchWatch struct {
	feed   *feed
	branch *branch
	events chan watch.Event // closed at the end, under feed.mu or later
	opened time.Time
	timer  *time.Timer // ends it as a server would; may be nil
}

// openBranch opens the branch of a member, or returns nil. Events up to the version of options are
// skipped. A streaming list is a watch of its own.
func (f *feed) openBranch(m *member, options metav1.ListOptions) watch.Interface {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, from := f.branches[m.namespace], options.ResourceVersion
	switch {
	case b == nil:
		return nil
	case b.member != m, !b.isGranted, b.open != nil, options.SendInitialEvents != nil,
		b.sent != from && !isNewer(from, b.sent):
		f.endLocked(b)
		return nil
	}
	w := &branchWatch{
		feed: f, branch: b, events: make(chan watch.Event, branchLen), opened: time.Now(),
	}
	b.sent, b.open = from, w
	if isNewer(from, b.newest) {
		b.newest = from
	}
	for _, e := range b.waiting {
		if version := versionOf(e); isNewer(version, from) {
			w.events <- e // at most branchLen
			b.sent = version
		}
	}
	b.waiting = nil
	if seconds := options.TimeoutSeconds; seconds != nil {
		w.timer = time.AfterFunc(time.Duration(*seconds)*time.Second, w.close)
	}
	return w
}

func versionOf(e watch.Event) string { return e.Object.(metav1.Object).GetResourceVersion() }

// ResultChan implements watch.Interface.
func (w *branchWatch) ResultChan() <-chan watch.Event { return w.events }

// IsUnanswered says that no server was asked for the watch: it was asked for that of the feed.
func (w *branchWatch) IsUnanswered() bool { return true }

// Stop implements watch.Interface.
func (w *branchWatch) Stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.close()
}

// close ends the watch. From now on events wait in the branch.
func (w *branchWatch) close() {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	if w.branch.open == w {
		w.branch.open = nil
		close(w.events)
	}
}

// Quiet implements reflector.Quieter: a pause of the branch does not show that the feed has nothing
// more. See member.held. The size makes the reflector look once a second.
func (w *branchWatch) Quiet() (arrived time.Time, largest int, ok bool) {
	return time.Time{}, math.MaxInt32, false
}

// hasBranch reports whether a member has its changes from a feed.
func (c *cluster) hasBranch(m *member) bool {
	f := c.feed.Load()
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.branches[m.namespace]
	return b != nil && b.member == m && b.isGranted
}

// setOwn notes the watch that a member has opened; nil is a branch.
func (m *member) setOwn(w watch.Interface) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.own = w
}

// followed notes whether the member's reflector follows a watch.
func (m *member) followed(t reflector.Transition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watching = time.Time{}
	if t.To == reflector.Watching {
		m.watching = time.Now()
	}
}

// watchesAlone returns what a member has, and its own watch. The watch is nil if the member may not
// change it for a branch now: it does not follow one, or not for long enough, or it is silent, and
// the server may have forgotten the version.
func (m *member) watchesAlone() (held freshness.Moment, own watch.Interface) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hasEnded || m.watching.IsZero() || time.Since(m.watching) < shortestBranch {
		return freshness.Moment{}, nil
	}
	held = m.tracker.HandedOver().Moment
	if time.Since(held.AsOf) > maxSilence || checkVersion(held.ResourceVersion) != nil {
		return freshness.Moment{}, nil
	}
	return held, m.own
}

// forget ends the branch of a member that ends.
func (c *cluster) forget(m *member) {
	m.mu.Lock()
	m.hasEnded = true // before: a feed that is joined later leaves it out
	m.mu.Unlock()
	if f := c.feed.Load(); f != nil {
		f.drop(m)
	}
}

// addFeed adds the last contact of the feed, and its present failure, to the status of a member.
func (c *cluster) addFeed(status *reflector.Status) {
	f := c.feed.Load()
	if f == nil {
		return
	}
	of := f.reflector.Status()
	if of.LastContact.After(status.LastContact) {
		status.LastContact = of.LastContact
	}
	if err := failure(of); err != nil {
		status.LastError = fmt.Errorf("watch of the whole cluster: %w", err)
		status.LastErrorTime = of.LastErrorTime
		status.ConsecutiveFailures = of.ConsecutiveFailures
	}
}

// prove notes what a feed shows about the store: if the feed has handed over everything up to some
// time, and the member has stored all that it got, the store has everything up to then.
func (c *cluster) prove(m *member) {
	f := c.feed.Load()
	if f == nil {
		return
	}
	asOf := f.tracker.HandedOver().AsOf // first: what it means is in the branch by now
	f.mu.Lock()
	b := f.branches[m.namespace]
	isComplete := b != nil && b.member == m && b.isGranted && f.behind == ""
	var newest string
	if isComplete {
		newest = b.newest
	}
	f.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(
		m.tracker.Held().ResourceVersion, newest)
	if isComplete && err == nil && order >= 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		if asOf.After(m.proved) {
			m.proved = asOf
		}
	}
}

// held returns what the store holds of the namespace.
func (m *member) held() freshness.Moment {
	c := m.set.cluster
	if c == nil {
		return m.tracker.Held()
	}
	c.prove(m)
	m.mu.Lock()
	proved := m.proved // it remains true, unless a change is lost
	m.mu.Unlock()
	held := m.tracker.Held()
	if !held.AsOf.IsZero() && proved.After(held.AsOf) {
		held.AsOf = proved
	}
	return held
}
