// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// devtools are what a page of a process shows. Every other process has them, and each one of an
// observed script: so their decorators keep all invariants. All methods do nothing without them.
type devtools struct {
	page    *health.Handler
	journal *journal.Journal
	turn    int
}

func (p *process) newDevtools() *devtools {
	if p.impl != observed && (p.impl != ours || p.world.starts%2 == 0) {
		return nil
	}
	d := &devtools{page: health.New(), journal: journal.New()}
	d.page.SetJournal(d.journal)
	d.page.AddInformer("informer", p.informer)
	if p.elector != nil {
		d.page.AddElection("lock", p.elector)
	}
	d.page.Page() // begins to record
	return d
}

func (d *devtools) handler(
	name string, h informer.ResourceEventHandler,
) informer.ResourceEventHandler {
	if d == nil {
		return h
	}
	noted := journal.NewHandler(d.journal, "informer", h)
	noted.Named(name)
	return noted
}

// newQueue is a controller's Options.NewQueue.
func (d *devtools) newQueue(
	name string, limiter workqueue.TypedRateLimiter[string],
) workqueue.TypedRateLimitingInterface[string] {
	queue := workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{})
	return journal.NewRateLimitingQueue(d.journal, name, queue)
}

// ask asks for all that a page shows, and about a key in turn, until the process ends.
func (d *devtools) ask(ctx context.Context, p *process) {
	for n := 0; ctx.Err() == nil; n++ {
		d.get([]string{"", "?format=json&limit=20"}[n%2])
		key := "default/nothing"
		if keys := slices.Sorted(slices.Values(p.informer.GetStore().ListKeys())); len(keys) > 0 {
			key = keys[n%len(keys)]
		}
		d.get("?why=" + url.QueryEscape(key))
		select {
		case <-time.After(pollPeriod):
		case <-ctx.Done():
		}
	}
}

// pollPeriod is no part of the other periods. The web page asks three times as often, which would
// take most of the time of a simulation.
const pollPeriod = 7345 * time.Millisecond

func (d *devtools) get(target string) {
	r := httptest.NewRequest(http.MethodGet, "/debug/informers"+target, http.NoBody)
	r.Host = "localhost"
	d.page.ServeHTTP(httptest.NewRecorder(), r)
}

// Nothing that a page does changes a history: the same script has the same one with and without
// devtools.
func TestReferenceDevtools(t *testing.T) {
	var with, without atomic.Int64 // lists and watches
	t.Run("seeds", func(t *testing.T) {
		for n := *first; n < *first+*seeds; n += 4 { // each takes as long as four without a page
			t.Run(fmt.Sprint("seed=", n), func(t *testing.T) {
				t.Parallel()
				s := generate(n)
				p := pair{run(t, compared(s, comparable)), run(t, compared(s, observed))}
				without.Add(int64(p.ours.requests))
				with.Add(int64(p.theirs.requests))
				require.Len(t, p.theirs.histories, len(p.ours.histories))
				assert.Empty(t, p.differences())
			})
		}
	})
	t.Logf("lists and watches: %d without devtools, %d with them", without.Load(), with.Load())
	assert.InEpsilon(t, without.Load(), with.Load(), 0.1)
}

// checkDevtools checks the answers of invariant 9 in some of the moments: they are true now. All
// goroutines are blocked.
func (p *process) checkDevtools() {
	d := p.devtools
	if d == nil {
		return
	}
	if d.turn++; d.turn%8 != 0 {
		return // a page is as expensive as all the rest of the simulation
	}
	k := p.work
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(k.keys)) {
		answer := d.page.WhyNow(key)
		wrong := ""
		switch _, known := k.keys[answer.Other]; {
		case known && slices.Contains(slices.Collect(maps.Values(k.live)), key):
			wrong = "it is being reconciled itself"
		case known:
			wrong = k.contradictedLocked(answer.Other, answer)
		case answer.Other == "":
			wrong = k.contradictedLocked(key, answer)
		}
		if wrong != "" {
			p.violate(9, "%s: the answer about %s is %q, and %s", p.name, key, answer.Sentence,
				wrong)
		}
		p.cover("answer " + string(answer.Reason))
		k.checkReasonsLocked(key, d.journal)
	}
}

// contradictedLocked returns what contradicts an answer, or "". A controller that stops takes keys
// without a call of reconcile, and ignores keys.
func (k *work) contradictedLocked(key string, answer health.Answer) string {
	s, version := k.keys[key], k.stored(key)
	isLive := slices.Contains(slices.Collect(maps.Values(k.live)), key)
	phase := k.controller.Status().Phase
	stops := phase == controller.PhaseStopping || phase == controller.PhaseStopped
	is := func(reasons ...health.Reason) bool { return slices.Contains(reasons, answer.Reason) }
	switch {
	case isLive != is(health.Reconciling):
		return fmt.Sprintf("it is being reconciled: %v", isLive)
	case !is(health.Reconciling, health.Queued, health.Delayed, health.GivenUp) && !stops &&
		s.begun.Before(s.added):
		return fmt.Sprintf("it was added at %v, and last reconciled at %v", s.added, s.begun)
	case is(health.Delayed, health.GivenUp) && !s.failed:
		return "the last call did not fail"
	case is(health.Delayed, health.Scheduled) && s.due.IsZero() && len(s.maybe) == 0:
		return "it has no delay"
	case is(health.Unknown, health.Unsynced) && version != 0:
		return fmt.Sprintf("the store has version %d", version)
	case is(health.Handled, health.Behind) && version == 0 && answer.Other == "":
		return "the store does not have it"
	case strings.Contains(answer.Sentence, "it has not changed since") && !stops &&
		version != s.version:
		return fmt.Sprintf("it was in version %d then, and is in version %d", s.version, version)
	}
	return ""
}

// stored returns the version of an object in the store, or 0.
func (k *work) stored(key string) uint64 {
	obj, exists, _ := k.p.informer.GetStore().GetByKey(key)
	if !exists {
		return 0
	}
	return number(obj.(*corev1.ConfigMap).ResourceVersion)
}

// checkReasonsLocked compares the newest reconcile that the journal remembers with what the calls
// of the key have noted.
func (k *work) checkReasonsLocked(key string, j *journal.Journal) {
	_, queues := j.About(key)
	s := k.keys[key]
	if len(queues) != 1 || len(queues[0].Last) == 0 || s.begun.IsZero() {
		return
	}
	newest := queues[0].Last[0]
	running := newest.Result == journal.Running
	if s.running && (!running || newest.Start.After(s.begun)) {
		k.p.violate(9, "%s: %s is being reconciled since %v, and the journal says %s since %v",
			k.p.name, key, s.begun, newest.Result, newest.Start)
	}
	claims := newest.Result == journal.Retried || newest.Result == journal.Postponed
	if !s.running && claims && s.failed != (newest.Result == journal.Retried) {
		k.p.violate(9, "%s: the last call for %s failed: %v, and the journal says %s", k.p.name,
			key, s.failed, newest.Result)
	}
	for _, cause := range newest.Causes {
		k.p.cover("cause " + string(cause.Kind))
		if cause.Call != nil && cause.Call.Handler != "enqueuer" {
			k.p.violate(9, "%s: %s was added by handler %s, which adds nothing", k.p.name, key,
				cause.Call.Handler)
		}
		if cause.Time.After(newest.Start) {
			k.p.violate(9, "%s: %s was reconciled at %v because of what came at %v", k.p.name, key,
				newest.Start, cause.Time)
		}
		if cause.Call != nil {
			k.checkChange(key, *cause.Call)
		}
	}
}

// checkChange checks that the server had the object in the version that a handler was called for.
func (k *work) checkChange(key string, call journal.Call) {
	if call.ResourceVersion == "" {
		return // a tombstone without an object
	}
	if _, happened := k.p.seeing.exact(call.Key, number(call.ResourceVersion)); !happened {
		k.p.violate(9, "%s: %s was added for %s@%s, which the server never had", k.p.name, key,
			call.Key, call.ResourceVersion)
	}
	if time.Now().Before(call.Time) || call.Duration < 0 {
		k.p.violate(9, "%s: a call in the future: %v", k.p.name, fmt.Sprint(call))
	}
}
