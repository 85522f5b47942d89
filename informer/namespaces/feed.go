// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/reflector"
)

// feed is one watch of the whole cluster, with a branch for each namespace that it serves. Objects
// of other namespaces are decoded and dropped.
//
//	watch of the cluster -> reflector -> [feed] -> branch of a -> reflector of a
//	                                            -> branch of b -> reflector of b
//
// It is the ListerWatcher and the Store of its reflector, which opens the watch again and again.
// Each time, the members that watch alone join: the watch begins at the oldest of their versions,
// and their own watches end once it is granted. Events that a branch has had are skipped. A server
// gives each change of a resource another version.
//
//	W1  a branch that was granted has in waiting every change of its namespace after sent, or
//	    hands it to its open watch; otherwise it ends, and the member watches alone from the
//	    version that it has
//	W2  each event of a branch is newer than the one before, and than the version of the watch
//	    for which it was opened
//	W3  a member that does not take its events delays no other: a branch with branchLen of them
//	    ends
type feed struct {
	cluster   *cluster
	inner     reflector.ListerWatcher
	example   runtime.Object
	tracker   *freshness.Tracker // of what was handed to branches
	reflector *reflector.Reflector
	cancel    context.CancelFunc // ends the reflector

	mu       sync.Mutex         // guards the fields below; no foreign code runs under it
	branches map[string]*branch // by namespace
	open     watch.Interface    // nil before the first one
	down     time.Time          // since when no watch is open; zero while one is
	behind   string             // if not "", changes from oldest up to this version are repeated
	oldest   string
	fatal    error // the server's answer after which no other try makes sense
	wasOpen  bool
	ended    bool
}

// branch is what one member gets of a feed. The feed's mu guards it.
type branch struct {
	member    *member
	own       watch.Interface // of the member, until the branch is granted
	isGranted bool
	newest    string        // what is not newer was in the branch, or before it
	sent      string        // a member opens the branch at this version, or a newer one
	waiting   []watch.Event // newer than sent, while open is nil
	open      *branchWatch
}

const (
	branchLen = 128
	// shortestBranch is how long a branch is open at least. To a reflector, a watch that ends
	// sooner without an event is a reason to list.
	shortestBranch = 2 * time.Second
)

// errBringsNothing refuses a list of the newest state, with which a reflector replaces watches that
// do not bring it.
var errBringsNothing = errors.New("watches of the whole cluster do not bring its changes")

// errBranch refuses a question to the server about the version of a namespace. The feed asks one
// for all: see member.held.
var errBranch = errors.New("the watch of the whole cluster asks for the newest version")

// newFeed returns the feed of the members that watch alone. Its reflector begins with what these
// have: everything up to the oldest of their versions.
func newFeed(c *cluster) *feed {
	example, _ := c.set.run.example.(runtime.Object)
	if objects.IsNil(example) {
		example = &metav1.PartialObjectMetadata{}
	}
	f := &feed{
		cluster: c, inner: c.set.newListerWatcher(metav1.NamespaceAll), example: example,
		tracker: freshness.Direct(), branches: map[string]*branch{}, down: time.Now(),
	}
	oldest := freshness.Moment{AsOf: time.Now()}
	for _, m := range *c.set.members.Load() {
		held, own := m.watchesAlone()
		if own == nil {
			continue
		}
		if oldest.ResourceVersion == "" || isNewer(oldest.ResourceVersion, held.ResourceVersion) {
			oldest.ResourceVersion = held.ResourceVersion
		}
		if held.AsOf.Before(oldest.AsOf) {
			oldest.AsOf = held.AsOf
		}
	}
	f.tracker.Note(freshness.Handover{
		Kind: freshness.List, ResourceVersion: oldest.ResourceVersion, At: oldest.AsOf,
	})
	of, noStreams := c.set.run.options, false
	f.reflector = reflector.New(f, nil, followedFeed{f}, reflector.Options{
		Logger: of.Logger, Name: of.Name + " in the whole cluster",
		TypeDescription: of.TypeDescription, MinWatchTimeout: of.MinWatchTimeout,
		WatchdogSlack: of.WatchdogSlack, Clock: of.Clock, Backoff: of.Backoff, Outage: of.Outage,
		MaxInternalErrorRetryDuration: of.MaxInternalErrorRetryDuration,
		UseWatchList:                  &noStreams,
		// With pages, a list at the last version says nothing about the present.
		WatchListPageSize: 500,
		Observe:           f.observe,
		WatchErrorHandler: func(context.Context, *reflector.Reflector, error) {}, // see fatal
	})
	return f
}

// followedFeed is the feed, in which the reflector finds the Tracker.
type followedFeed struct{ *feed }

func (f followedFeed) Followed() (any, *freshness.Tracker) { return f.feed, f.tracker }

// observe follows the transitions of the feed's reflector.
func (f *feed) observe(t reflector.Transition) {
	f.mu.Lock()
	isFirst := t.To == reflector.Watching && !f.wasOpen
	switch {
	case t.To == reflector.Watching:
		f.down, f.wasOpen = time.Time{}, true
	case f.down.IsZero():
		f.down = time.Now()
	}
	if isRefusal(t.Err) && f.fatal == nil {
		f.fatal = t.Err
		f.cancel()
	}
	f.mu.Unlock()
	if isFirst {
		f.cluster.log().Info("Watching the whole cluster in place of each namespace",
			"namespaces", f.granted())
	}
}

// isRefusal reports whether the server will give the same answer again: the right is missing, or
// the version is too old. It is not busy, or sick.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests
}

// ListStream implements reflector.StreamLister. The only list is that of nothing, at the version
// that the members have. Questions go to the server.
func (f *feed) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	switch {
	case listwatch.IsQuestion(options):
		return reflector.ListPage(ctx, f.inner, f.example, options, each)
	case options.ResourceVersion == "", options.ResourceVersion == "0":
		return metav1.ListMeta{}, errBringsNothing
	}
	return metav1.ListMeta{ResourceVersion: options.ResourceVersion}, nil
}

// ListWithContext is not called: a reflector calls ListStream.
func (f *feed) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &metav1.List{}, nil
}

// WatchWithContext opens the watch, and ends those of the members that join if it is granted.
func (f *feed) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	joining := f.join(&options.ResourceVersion)
	w, err := f.inner.WatchWithContext(ctx, options)
	isGranted := err == nil && !objects.IsNil(w) && !listwatch.IsUnreachable(w)
	for _, own := range f.settle(joining, w, isGranted) {
		own.Stop()
	}
	return w, err
}

// join makes a branch for each member that watches alone. from becomes the oldest version.
func (f *feed) join(from *string) (joining []*branch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := *from
	if f.behind != "" { // the last watch has not brought all of them
		before, *from = f.behind, f.oldest
	}
	for _, m := range *f.cluster.set.members.Load() {
		held, own := m.watchesAlone()
		if own == nil || f.branches[m.namespace] != nil || f.ended {
			continue
		}
		if isNewer(*from, held.ResourceVersion) {
			*from = held.ResourceVersion
		}
		b := &branch{
			member: m, own: own, newest: held.ResourceVersion, sent: held.ResourceVersion,
		}
		f.branches[m.namespace] = b
		joining = append(joining, b)
	}
	if *from != before {
		f.behind, f.oldest = before, *from
	}
	return joining
}

// settle grants the new branches, and returns the watches that they replace, or ends them.
func (f *feed) settle(
	joining []*branch, w watch.Interface, isGranted bool,
) (replaced []watch.Interface) {
	f.mu.Lock()
	defer f.mu.Unlock()
	isGranted = isGranted && !f.ended
	if isGranted {
		f.open = w
	}
	for _, b := range joining {
		switch {
		case f.branches[b.member.namespace] != b:
		case isGranted:
			replaced = append(replaced, b.own)
			b.isGranted, b.own = true, nil
		default:
			f.endLocked(b)
		}
	}
	return replaced
}

// reopen lets the members that watch alone join.
func (f *feed) reopen() {
	f.mu.Lock()
	open := f.open
	f.mu.Unlock()
	if open != nil {
		open.Stop()
	}
}

// granted counts the members that have their changes from the feed.
func (f *feed) granted() (count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.branches {
		if b.isGranted {
			count++
		}
	}
	return count
}

// Add, Update, Delete and Bookmark implement reflector.Store and reflector.BookmarkStore.

func (f *feed) Add(obj any) error    { return f.pass(watch.Added, obj) }
func (f *feed) Update(obj any) error { return f.pass(watch.Modified, obj) }
func (f *feed) Delete(obj any) error { return f.pass(watch.Deleted, obj) }

func (f *feed) pass(t watch.EventType, obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reachedLocked(m.GetResourceVersion())
	if b := f.branches[m.GetNamespace()]; b != nil {
		f.sendLocked(b, watch.Event{Type: t, Object: obj.(runtime.Object)}, m.GetResourceVersion())
	}
	return nil
}

func (f *feed) Bookmark(resourceVersion string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reachedLocked(resourceVersion)
	for _, b := range f.branches {
		obj := f.example.DeepCopyObject() // of the type that the reflector expects
		obj.(metav1.Object).SetResourceVersion(resourceVersion)
		f.sendLocked(b, watch.Event{Type: watch.Bookmark, Object: obj}, resourceVersion)
	}
	return nil
}

// Replace gets the list of nothing.
func (f *feed) Replace([]any, string) error { return nil }

// Resync is not called.
func (f *feed) Resync() error { return nil }

func (f *feed) reachedLocked(resourceVersion string) {
	if f.behind != "" && !isNewer(f.behind, resourceVersion) {
		f.behind = ""
	}
}

// sendLocked hands an event to a branch.
func (f *feed) sendLocked(b *branch, e watch.Event, resourceVersion string) {
	order, err := resourceversion.CompareResourceVersion(resourceVersion, b.newest)
	switch {
	case err == nil && order <= 0:
		return // W2
	case err != nil, b.open == nil && len(b.waiting) == branchLen:
		f.endLocked(b)
		return
	}
	b.newest = resourceVersion
	if b.open == nil {
		b.waiting = append(b.waiting, e)
		return
	}
	select {
	case b.open.events <- e:
		b.sent = resourceVersion
	default:
		f.endLocked(b)
	}
}

// endLocked ends a branch. The member watches alone from the version that it has.
func (f *feed) endLocked(b *branch) {
	delete(f.branches, b.member.namespace)
	if w := b.open; w != nil {
		b.open = nil
		time.AfterFunc(time.Until(w.opened.Add(shortestBranch)), func() { close(w.events) })
	}
}

// drop ends the branch of a member that ends.
func (f *feed) drop(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.branches[m.namespace]; b != nil && b.member == m {
		f.endLocked(b)
	}
}

// end ends all branches.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, b := range f.branches {
		f.endLocked(b)
	}
}

// isNewer reports whether a is newer than b, as far as that is known.
func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
