// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/informerstack/controller"
	"example.com/informerstack/observe/journal"
)

// Finding is something that is probably wrong in the program.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Sentence is what was seen, and Advice what to do.
	Sentence string `json:"sentence"`
	Advice   string `json:"advice"`
	// Chapter is the path of a page of docs.
	Chapter string `json:"chapter"`
	// Key is the key that it is about, or "".
	Key string `json:"key,omitempty"`
}

// FindingKind names a Finding for programs.
type FindingKind string

// The kinds, in the order of the page.
const (
	FailingInformer FindingKind = "failingInformer" // an informer cannot list or watch
	SilentWatch     FindingKind = "silentWatch"     // no event and no bookmark
	NotStarted      FindingKind = "notStarted"      // an informer that was made and not started
	HandlerStuck    FindingKind = "handlerStuck"    // a call of a handler does not return
	HandlerSlow     FindingKind = "handlerSlow"     // a handler works
	ReconcileStuck  FindingKind = "reconcileStuck"  // a reconcile takes much longer than others
	DoneForgotten   FindingKind = "doneForgotten"   // the goroutine of a key has left it
	NoWorkers       FindingKind = "noWorkers"       // keys are ready, and no worker takes them
	Loop            FindingKind = "loop"            // a reconcile's writes cause the next one
	HotKey          FindingKind = "hotKey"          // one key has most of the reconciles
	IdleUpdates     FindingKind = "idleUpdates"     // updates that change no field
	ResyncTimer     FindingKind = "resyncTimer"     // resyncs cause most of the reconciles
	NoForgets       FindingKind = "noForgets"       // workers never call Forget
	LeaseLate       FindingKind = "leaseLate"       // a leader does not renew its lease
	DeadKeys        FindingKind = "deadKeys"        // a controller gave keys up
	ModifiedCache   FindingKind = "modifiedCache"   // an object of a cache was changed
	Throttled       FindingKind = "throttled"       // requests wait for their client's limiter
	UnreadCache     FindingKind = "unreadCache"     // nothing reads the objects of an informer
	LargeFields     FindingKind = "largeFields"     // fields that few programs need
)

// When something is a finding. Each bound is far from what a healthy controller does.
const (
	failuresInRow  = 3
	silence        = 11 * time.Minute // a watch ends after 10 minutes at the latest
	stuckCall      = 10 * time.Second // a call of a handler
	stuckReconcile = time.Minute
	stuckFactor    = 3 // times the slowest reconcile of the queue that has ended
	enoughCalls    = 20
	echoesOf       = 30          // reconciles at least, four in five of them echoes
	nearEnd        = time.Second // of a reconcile, where it writes
	hotCount       = 100
	hotPeriod      = 30 * time.Second
	idleUpdates    = 20
	resyncsAtLeast = 20
	resyncsOfOne   = 3                // of one object: a single resync adds many keys
	resyncsWithin  = 50 * time.Second // of one object, so many: often resyncs come every 30 s
	missedRenewals = 3                // in a row; by default a leader gives up at the sixth
	lateRenewal    = 10 * time.Second // if the RetryPeriod is not known
	throttledLooks = 6                // at least, four in five of them
	throttledFor   = 10 * time.Second
	unservedFor    = 45 * time.Second // ready keys
	unservedFactor = 3                // times the longest such time that has ended
	startsWithin   = time.Minute      // an informer, after others
	over           = 5 * time.Minute  // what has not been seen for so long
	unreadFor      = 10 * time.Minute
	unreadBytes    = 1_000_000
	unreadCalls    = 5 // of each handler, most of which added a key
	largeFields    = 10_000_000
)

// findings looks at a page, and at what a journal remembers.
func findings(p Page, facts journal.Facts) []Finding {
	f := finder{now: p.Time, found: []Finding{}, leads: p.leads(), synced: p.synced()}
	for _, i := range p.Informers {
		if i.Started && (f.started.IsZero() || i.startedOrNot.Before(f.started)) {
			f.started = i.startedOrNot
		}
	}
	for _, i := range p.Informers {
		f.informer(i, facts)
		f.large(i)
		f.unread(i, facts)
	}
	for _, h := range facts.Handlers {
		f.handler(h)
	}
	for _, q := range p.Queues {
		f.queue(q, bound(q.Name, facts))
	}
	for _, c := range p.Controllers {
		f.controller(c, bound(c.Name, facts))
	}
	for _, k := range facts.Keys {
		f.key(k, facts)
	}
	for _, q := range facts.Queues {
		f.reconciles(q, facts.Keys)
	}
	for _, e := range p.Elections {
		f.election(e)
	}
	for _, m := range facts.Modified {
		f.modified(m)
	}
	if facts.Throttled != nil {
		f.throttled(*facts.Throttled)
	}
	return f.found
}

type finder struct {
	now   time.Time
	leads bool // otherwise caches and keys are kept for later
	// started is when the page first saw an informer that runs; zero if no informer does.
	started time.Time
	// synced is true if the caches are: workers start then.
	synced bool
	found  []Finding
}

func (f *finder) add(kind FindingKind, chapter, advice, format string, args ...any) {
	f.addKey("", kind, chapter, advice, format, args...)
}

func (f *finder) addKey(
	key string, kind FindingKind, chapter, advice, format string, args ...any,
) {
	f.found = append(f.found, Finding{Kind: kind, Chapter: "docs/" + chapter, Advice: advice,
		Sentence: fmt.Sprintf(format, args...), Key: strings.TrimPrefix(key, "/")})
}

// since returns the time since t; 0 if t is nil.
func (f *finder) since(t *time.Time) time.Duration {
	if t == nil {
		return 0
	}
	return f.now.Sub(*t)
}

func (f *finder) informer(i Informer, facts journal.Facts) {
	switch {
	case i.Stopped:
	case !i.Started && f.leads && !f.started.IsZero() &&
		min(f.now.Sub(i.startedOrNot), f.now.Sub(f.started)) > startsWithin:
		f.add(NotStarted, "informer.md", "Start it: the Start of a factory starts the informers "+
			"that were made before it. If the program never uses it, leave it out.",
			"informer %s was not started in the last %s, and others were", i.Name,
			short(f.now.Sub(i.startedOrNot)))
	case !i.Started:
	case i.ConsecutiveFailures >= failuresInRow:
		f.add(FailingInformer, "devtools.md", "Read the error: usually a permission is missing "+
			"(RBAC), a CRD is not installed, or the server does not answer.",
			"informer %s failed %d times in a row, the last time with: %s",
			i.Name, i.ConsecutiveFailures, i.LastError)
	case i.Synced && f.since(i.LastContact) > silence &&
		(i.CurrentAsOf == nil || f.since(i.CurrentAsOf) > silence): // or its kind is gone
		f.add(SilentWatch, "reflector.md", "The connection may be dead: set a shorter read "+
			"timeout or HTTP/2 pings, and look at what is between the program and the server.",
			"informer %s has heard nothing for %s, no event and no bookmark",
			i.Name, short(f.since(i.LastContact)))
	}
	for _, h := range i.Handlers {
		if age := f.now.Sub(h.runsSince(i, facts)); h.Pending > 0 && age > stuckCall {
			f.add(HandlerStuck, "informer.md", "A handler must only add a key to a queue: look "+
				"at what it waits for. Its memory grows with each change.",
				"a call of handler %s of informer %s has not returned for %s; calls that wait: %d",
				h.Name, i.Name, short(age), h.Pending-1)
		}
	}
}

const lastApplied = ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"

// large is about fields that a program seldom needs: what other programs own of the object, and
// the copy of it that kubectl apply makes.
func (f *finder) large(i Informer) {
	sum, share, names := int64(0), 0.0, []string{}
	for _, path := range []string{".metadata.managedFields",
		lastApplied} {
		if field := i.sizes.Field(path); field.Share >= 0.01 {
			sum += field.Bytes
			share += field.Share
			names = append(names, fmt.Sprintf("%s (%.0f %%)", path, 100*field.Share))
		}
	}
	if sum >= largeFields {
		f.add(LargeFields, "informer.md", "Unless the program reads them, drop them with a "+
			"transform, before they are stored: Reflector.Transform of the informer's options, or "+
			"SetTransform of client-go's.", "the objects of informer %s take about %s, %s of it "+
			"in fields that few programs read: %s", i.Name, bytesText(i.sizes.Bytes),
			bytesText(sum), strings.Join(names, ", "))
	}
}

// unread is about a store that nothing has read. A handler may read the objects that it gets, so
// only handlers that mostly add keys count as no readers.
func (f *finder) unread(i Informer, facts journal.Facts) {
	if !f.leads || !i.Unread || !i.Synced || i.Stopped || i.sizes.Bytes < unreadBytes ||
		f.now.Sub(i.added) < unreadFor {
		return
	}
	does := "it has no handler"
	for _, h := range i.Handlers {
		at := slices.IndexFunc(facts.Handlers, func(known journal.HandlerFacts) bool {
			return known.Informer == i.Name && known.Handler == h.Name
		})
		if at < 0 || facts.Handlers[at].Calls < unreadCalls ||
			facts.Handlers[at].Filtered*2 > facts.Handlers[at].Calls {
			return
		}
		does = "its handlers only add keys"
	}
	f.add(UnreadCache, "informer.md", "If nothing needs the objects, leave the informer out. If "+
		"only names and labels are needed, watch metadata alone: *metav1.PartialObjectMetadata, "+
		"or the metadatainformer of client-go. Otherwise read them here, not from the server.",
		"nothing has read the store of informer %s in %s: %s, and %s, about %s", i.Name,
		short(f.now.Sub(i.added)), does, plural(i.Objects, "object"), bytesText(i.sizes.Bytes))
}

func (f *finder) handler(h journal.HandlerFacts) {
	recent := h.Recent
	if recent.Calls >= enoughCalls &&
		recent.Time/time.Duration(recent.Calls) > journal.SlowCall && f.now.Sub(h.LastSlow) < over {
		f.add(HandlerSlow, "informer.md", "Move the work to the worker: a handler delays all "+
			"later changes of its informer.", "handler %s of informer %s takes %s per call, "+
			"and took at most %s", h.Handler, h.Informer,
			short(recent.Time/time.Duration(recent.Calls)), short(recent.Longest))
	}
	if recent.Idle >= idleUpdates && recent.Idle > recent.Updates/2 &&
		f.now.Sub(h.LastIdle) < over {
		f.add(IdleUpdates, "devtools.md", "Find the program that writes objects without a "+
			"change, by the manager in the reasons of a key. If a transform drops fields, they "+
			"may be what changed.", "%d of the last %d updates that handler %s of informer %s got "+
			"changed no field that this informer keeps", recent.Idle, recent.Updates,
			h.Handler, h.Informer)
	}
}

// bound returns how long a reconcile of a queue may take. Queues with one name have one bound.
func bound(queue string, facts journal.Facts) time.Duration {
	for _, known := range facts.Queues {
		if known.Queue == queue {
			return max(stuckReconcile, stuckFactor*known.Slowest)
		}
	}
	return stuckReconcile
}

func (f *finder) queue(q Queue, bound time.Duration) {
	workers := map[string]journal.Worker{}
	if q.Processing.Total > 0 && q.workers != nil {
		workers = q.workers()
	}
	for key, worker := range workers {
		switch age := f.now.Sub(worker.Since); {
		case age <= bound:
		case worker.Later != "" && worker.HasLeft(bound):
			f.addKey(key, DoneForgotten, "devtools.md", "Call Done for each key that Get returns: "+
				"write defer queue.Done(key) in the function that works on it. Until then no "+
				"worker gets the key again. If another goroutine works on it, look for what "+
				"that waits for.",
				"a worker of queue %s took %s %s ago%s, and its goroutine has taken %s since: "+
					"Done was not called for %[2]s", q.Name, key, short(age), atPlace(worker.Place),
				worker.Later)
		default:
			f.addKey(key, ReconcileStuck, "devtools.md", "Ask why the key is not reconciled: the "+
				"answer has the stack, or says that the goroutine has left the key. If it hangs, "+
				"give reconcile a deadline.",
				"a worker of queue %s has had %s for %s", q.Name, key, short(age))
		}
	}
	idle := f.now.Sub(q.unserved.since)
	if f.leads && f.synced && !q.isShutDown && !q.unserved.since.IsZero() &&
		idle > max(unservedFor, unservedFactor*q.unserved.longest) {
		f.add(NoWorkers, "controller.md", "Start the workers, once the caches are synced.",
			"queue %s has %s, and no worker took one in the last %s", q.Name,
			plural(q.Ready.Total, "ready key"), short(idle))
	}
}

func atPlace(place string) string {
	if place == "" {
		return ""
	}
	return " in " + place
}

func (f *finder) controller(c Controller, bound time.Duration) {
	for _, r := range c.Running.Items {
		if age := f.now.Sub(r.Since); age > bound {
			f.addKey(r.Key, ReconcileStuck, "controller.md", "Set ReconcileTimeout.",
				"controller %s has been reconciling %s for %s", c.Name, r.Key, short(age))
		}
	}
	if c.Phase == controller.PhaseRunning && c.DeadLetters.Total > 0 {
		f.add(DeadKeys, "controller.md", "Read the errors of its dead letters. A change of the "+
			"object queues it again.", "controller %s gave %s up", c.Name,
			plural(c.DeadLetters.Total, "key"))
	}
}

func (f *finder) key(k journal.KeyFacts, facts journal.Facts) {
	if len(k.Last) == 0 || k.Several || f.now.Sub(k.Last[0].Start) > over {
		return
	}
	if k.Of >= echoesOf && k.Echoes*5 >= k.Of*4 && nearEnds(k.Last) {
		wrote := ""
		if call := k.Last[0].Causes[0].Call; call != nil {
			wrote = ": " + call.String()
		}
		f.addKey(k.Key, Loop, "devtools.md", "Reconcile must write only if something differs, and "+
			"handlers can leave out changes of the status (compare the generation).",
			"queue %s reconciles %s in a loop: %d of the last %d reconciles followed an update "+
				"during the one before, and this program, or another of its name, wrote an object "+
				"with that key then%s", k.Queue, k.Key, k.Echoes, k.Of, wrote)
		return
	}
	period := f.now.Sub(facts.RecentSince)
	for _, q := range facts.Queues {
		if q.Queue == k.Queue && period > hotPeriod && k.Recent >= hotCount &&
			float64(k.Recent) > period.Seconds() && k.Recent*2 > q.Recent.Reconciles &&
			k.Recent < q.Recent.Reconciles { // there are others
			f.addKey(k.Key, HotKey, "devtools.md", "Ask for the reasons of the key. Use "+
				"AddAfter with a short time, so that changes are merged.",
				"queue %s reconciled %s %d times in %s, more often than all its other keys",
				k.Queue, k.Key, k.Recent, short(period))
		}
	}
}

// nearEnds reports whether the causes of the last reconciles came near the end of the one before.
// During a long reconcile other programs write, too.
func nearEnds(last []journal.Reconcile) bool {
	near, of := 0, 0
	for n, before := range last[min(1, len(last)):] {
		from := before.Start.Add(before.Duration - nearEnd)
		if !slices.ContainsFunc(last[n].Causes, func(c journal.Cause) bool {
			return c.Time.Before(from)
		}) {
			near++
		}
		of++
	}
	return near*5 >= of*4
}

func (f *finder) reconciles(q journal.QueueFacts, keys []journal.KeyFacts) {
	recent := q.Recent
	if recent.Resyncs >= resyncsAtLeast && recent.Resyncs*2 > recent.Reconciles &&
		resynced(q.Queue, keys) && f.now.Sub(q.LastResync) < over {
		f.add(ResyncTimer, "informer.md", "A resync repeats what the store has, and finds no "+
			"lost change. For work at a time use AddAfter; otherwise raise the period.",
			"%d of the last %d reconciles of queue %s were caused by resyncs alone",
			recent.Resyncs, recent.Reconciles, q.Queue)
	}
	retries := q.Results[journal.Retried]
	if q.Results[journal.NoForget] >= enoughCalls && q.Results[journal.Forgotten] == 0 &&
		retries > 0 && f.now.Sub(q.LastNoForget) < over {
		f.add(NoForgets, "workqueue.md", "Call Forget after a success: otherwise the next "+
			"failure of the key waits longer than it should.", "queue %s: %d reconciles "+
			"ended without Forget, and %d failed", q.Queue, q.Results[journal.NoForget], retries)
	}
}

// resynced reports whether a key was reconciled for several resyncs of one object within a short
// time.
func resynced(queue string, keys []journal.KeyFacts) bool {
	for _, k := range keys {
		times := map[[3]string][]time.Time{} // the newest first
		for _, r := range k.Last {
			for _, c := range r.Causes {
				if k.Queue != queue || c.Kind != journal.Resync || c.Call == nil {
					continue
				}
				id := [3]string{c.Call.Informer, c.Call.Handler, c.Call.Key}
				times[id] = append(times[id], c.Time)
				if all := times[id]; len(all) >= resyncsOfOne &&
					all[len(all)-resyncsOfOne].Sub(all[len(all)-1]) <= resyncsWithin {
					return true
				}
			}
		}
	}
	return false
}

func (f *finder) modified(m journal.Modified) {
	f.addKey(m.Key, ModifiedCache, "store.md", "Call DeepCopy before a change: all readers of the "+
		"cache see this one, and the server does not have it.", "the object %s in the cache of "+
		"informer %s was changed by %s%s; %s in all", m.Key, m.Informer, m.Where,
		withColon(strings.Join(m.Fields, " ")), plural(m.Times, "change"))
}

func (f *finder) throttled(t journal.Throttled) {
	if t.Looks >= throttledLooks && t.Seen*5 >= t.Looks*4 && f.now.Sub(t.Since) >= throttledFor {
		f.add(Throttled, "devtools.md", "Read from the cache, and write only if something "+
			"differs. If all requests are needed, raise QPS and Burst of the rest.Config: the "+
			"server protects itself.", "requests wait for the limiter of their own client, not "+
			"for the server: seen in %d of %d looks in the last %s; %s now, most sent by %s",
			t.Seen, t.Looks, short(f.now.Sub(t.Since)), plural(t.Waiting, "request"), t.Function)
	}
}

func (f *finder) election(e Election) {
	if e.late(f.now) {
		f.add(LeaseLate, "leaderelection.md", "If the server does not answer, the program stops "+
			"leading when RenewDeadline has passed.", "this process leads %s, and has not renewed "+
			"the lease for %s%s", e.Name, short(f.since(e.LastRenewal)), e.errorSince())
	}
}
