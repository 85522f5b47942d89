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
	HandlerStuck    FindingKind = "handlerStuck"    // a call of a handler does not return
	HandlerSlow     FindingKind = "handlerSlow"     // a handler works
	ReconcileStuck  FindingKind = "reconcileStuck"  // a reconcile takes much longer than others
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
	stuck          = 10 * time.Second // a call of a handler, a reconcile
	stuckFactor    = 20               // times the median of the queue
	stuckUnknown   = time.Minute      // a reconcile, without a median
	slowHandler    = 5 * time.Millisecond
	enoughCalls    = 20
	echoesOf       = 10          // reconciles at least, four in five of them echoes
	nearEnd        = time.Second // of a reconcile, where it writes
	hotCount       = 100
	hotPeriod      = 30 * time.Second
	idleUpdates    = 20
	resyncsAtLeast = 20
	resyncsOfOne   = 3                // of one object: a single resync adds many keys
	missedRenewals = 3                // in a row; by default a leader gives up at the sixth
	lateRenewal    = 10 * time.Second // if the RetryPeriod is not known
	throttledLooks = 6                // at least, four in five of them
	throttledFor   = 10 * time.Second
	unreadFor      = 10 * time.Minute
	unreadBytes    = 1_000_000
	unreadCalls    = 5 // of each handler, most of which added a key
	largeFields    = 10_000_000
)

// findings looks at a page, and at what a journal remembers.
func findings(p Page, facts journal.Facts) []Finding {
	f := finder{now: p.Time, found: []Finding{}, leads: p.leads(), synced: p.synced()}
	for _, i := range p.Informers {
		f.informer(i)
		f.large(i)
		f.unread(i, facts)
	}
	for _, h := range facts.Handlers {
		f.handler(h)
	}
	for _, q := range p.Queues {
		f.queue(q, bound(q.Name, p.queuesNamed(q.Name) == 1, facts))
	}
	for _, c := range p.Controllers {
		f.controller(c, bound(c.Name, true, facts))
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

func (f *finder) informer(i Informer) {
	switch {
	case i.Stopped || !i.Started:
	case i.ConsecutiveFailures >= failuresInRow:
		f.add(FailingInformer, "devtools.md", "Read the error: usually a permission is missing "+
			"(RBAC), a CRD is not installed, or the server does not answer.",
			"informer %s failed %d times in a row, the last time with: %s",
			i.Name, i.ConsecutiveFailures, i.LastError)
	case i.Synced && f.since(i.LastContact) > silence:
		f.add(SilentWatch, "reflector.md", "The connection may be dead: set a shorter read "+
			"timeout or HTTP/2 pings, and look at what is between the program and the server.",
			"informer %s has heard nothing for %s, no event and no bookmark",
			i.Name, short(f.since(i.LastContact)))
	}
	for _, h := range i.Handlers {
		age := time.Duration(h.OldestPendingSeconds * float64(time.Second))
		if h.Pending > 0 && age > stuck {
			f.add(HandlerStuck, "informer.md", "A handler must only add a key to a queue: look "+
				"at what it waits for. Its memory grows with each change.",
				"handler %s of informer %s is %s behind, the oldest for %s",
				h.Name, i.Name, plural(h.Pending, "call"), short(age))
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
	if h.Calls >= enoughCalls && h.Time/time.Duration(h.Calls) > slowHandler {
		f.add(HandlerSlow, "informer.md", "Move the work to the worker: a handler delays all "+
			"later changes of its informer.", "handler %s of informer %s takes %s per call, "+
			"and took at most %s", h.Handler, h.Informer,
			short(h.Time/time.Duration(h.Calls)), short(h.Longest))
	}
	updates := h.Kinds[journal.Updated]
	if h.Idle >= idleUpdates && h.Idle > updates/2 {
		f.add(IdleUpdates, "devtools.md", "Find the program that writes objects without a "+
			"change, by the manager in the reasons of a key. If a transform drops fields, they "+
			"may be what changed.", "%d of %d updates that handler %s of informer %s got changed "+
			"no field that this informer keeps", h.Idle, updates, h.Handler, h.Informer)
	}
}

// bound returns how long a reconcile of a queue may take. If it is not the only queue with its
// name, the median is that of all of them.
func bound(queue string, only bool, facts journal.Facts) time.Duration {
	for _, known := range facts.Queues {
		switch slow := max(stuck, stuckFactor*known.Median); {
		case known.Queue == queue && only:
			return slow
		case known.Queue == queue:
			return max(slow, stuckUnknown)
		}
	}
	return stuckUnknown
}

func (f *finder) queue(q Queue, bound time.Duration) {
	workers := map[string]journal.Worker{}
	if q.Processing.Total > 0 && q.workers != nil {
		workers = q.workers()
	}
	for key, worker := range workers {
		if age := f.now.Sub(worker.Since); age > bound {
			f.addKey(key, ReconcileStuck, "devtools.md", "Ask why the key is not reconciled: the "+
				"answer has the stack. Give reconcile a deadline.",
				"a worker of queue %s has had %s for %s", q.Name, key, short(age))
		}
	}
	idle := f.now.Sub(q.idleSince)
	if f.leads && f.synced && !q.idleSince.IsZero() && idle > stuck {
		f.add(NoWorkers, "controller.md", "Start the workers, once the caches are synced.",
			"queue %s has %s, and no worker took one in the last %s", q.Name,
			plural(q.Ready.Total, "ready key"), short(idle))
	}
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
	if k.Of >= echoesOf && k.Echoes*5 >= k.Of*4 && nearEnds(k.Last) {
		wrote := ""
		if call := k.Last[0].Causes[0].Call; call != nil {
			wrote = ": " + call.String()
		}
		f.addKey(k.Key, Loop, "devtools.md", "Reconcile must write only if something differs, and "+
			"handlers can leave out changes of the status (compare the generation).",
			"queue %s reconciles %s in a loop: %d of the last %d reconciles followed an update "+
				"during the one before%s", k.Queue, k.Key, k.Echoes, k.Of, wrote)
		return
	}
	period := f.now.Sub(facts.Since)
	for _, q := range facts.Queues {
		if q.Queue == k.Queue && period > hotPeriod && k.Reconciles >= hotCount &&
			float64(k.Reconciles) > period.Seconds() && k.Reconciles*2 > q.Reconciles &&
			k.Reconciles < q.Reconciles { // there are others
			f.addKey(k.Key, HotKey, "devtools.md", "Ask for the reasons of the key. Use "+
				"AddAfter with a short time, so that changes are merged.",
				"queue %s reconciled %s %d times in %s, more often than all its other keys",
				k.Queue, k.Key, k.Reconciles, short(period))
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
	if q.Resyncs >= resyncsAtLeast && q.Resyncs*2 > q.Reconciles && resynced(q.Queue, keys) {
		f.add(ResyncTimer, "informer.md", "A resync repeats what the store has, and finds no "+
			"lost change. For work at a time use AddAfter; otherwise raise the period.",
			"%d of %d reconciles of queue %s were caused by resyncs alone", q.Resyncs,
			q.Reconciles, q.Queue)
	}
	retries := q.Results[journal.Retried]
	if q.Results[journal.NoForget] >= enoughCalls && q.Results[journal.Forgotten] == 0 &&
		retries > 0 {
		f.add(NoForgets, "workqueue.md", "Call Forget after a success: otherwise the next "+
			"failure of the key waits longer than it should.", "queue %s: %d reconciles "+
			"ended without Forget, and %d failed", q.Queue, q.Results[journal.NoForget], retries)
	}
}

// resynced reports whether the last reconciles of a key have several resyncs of one object as
// causes.
func resynced(queue string, keys []journal.KeyFacts) bool {
	for _, k := range keys {
		times := map[[3]string]int{}
		for _, r := range k.Last {
			for _, c := range r.Causes {
				if k.Queue != queue || c.Kind != journal.Resync || c.Call == nil {
					continue
				}
				id := [3]string{c.Call.Informer, c.Call.Handler, c.Call.Key}
				if times[id]++; times[id] == resyncsOfOne {
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
			"the lease for %s%s", e.Name, short(f.since(e.LastRenewal)), withColon(e.LastError))
	}
}
