// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/journal"
)

// String returns the page as text. Unprintable characters are escaped.
func (p Page) String() string {
	t := text{now: p.Time}
	for _, f := range p.Findings {
		t.head("finding: %s", f.Sentence)
		t.line("  %s (%s)", f.Advice, f.Chapter)
	}
	for _, i := range p.Informers {
		t.informer(i, p.Journal)
	}
	for _, c := range p.Controllers {
		t.controller(c)
	}
	for _, q := range p.Queues {
		t.queue(q)
	}
	for _, e := range p.Elections {
		t.election(e)
	}
	for _, g := range p.Groups {
		t.group(g)
	}
	t.kinds(p.Kinds)
	if p.Journal != nil {
		t.journal(*p.Journal)
	}
	if t.b.Len() == 0 {
		return "nothing to show\n"
	}
	return t.b.String()
}

// text writes a page, with times relative to now.
type text struct {
	now time.Time
	b   strings.Builder
}

func (t *text) line(format string, args ...any) {
	t.b.WriteString(printable.Line(fmt.Sprintf(format, args...)) + "\n")
}

// head starts a section.
func (t *text) head(format string, args ...any) {
	if t.b.Len() > 0 {
		t.b.WriteByte('\n')
	}
	t.line(format, args...)
}

func (t *text) informer(i Informer, facts *journal.Facts) {
	life := "not started"
	switch {
	case i.Stopped:
		life = "stopped"
	case i.Synced:
		life = "synced"
	case i.Started:
		life = "not synced"
	}
	t.head("informer %s: %s, %d objects%s", i.Name, life, i.Objects, memory(i))
	if i.Selection != "" {
		t.line("  selects %s", i.Selection)
	} else {
		t.line("  selectors not known: its client has them")
	}
	if i.Started {
		t.line("  reflector: %s at resourceVersion %q", i.Phase, i.ResourceVersion)
		asOf := "not known"
		if i.CurrentAsOf != nil {
			asOf = t.ago(i.CurrentAsOf)
		}
		t.line("  data as of %s, last contact %s, last event %s, last bookmark %s", asOf,
			t.ago(i.LastContact), t.ago(i.LastEvent), t.ago(i.LastBookmark))
		t.line("  failures: %d, in a row: %d, streaming lists given up: %d",
			i.Failures, i.ConsecutiveFailures, i.Fallbacks)
	}
	if i.LastError != "" {
		t.line("  last error %s: %s", t.ago(i.LastErrorTime), i.LastError)
	}
	for _, h := range i.Handlers {
		synced := "synced"
		if !h.Synced {
			synced = "not synced"
		}
		oldest := ""
		if h.Pending > 0 {
			age := time.Duration(h.OldestPendingSeconds * float64(time.Second))
			oldest = ", the oldest for " + short(age)
		}
		t.line("  handler %s: %s, %d pending%s, %d calls%s, %d panics",
			h.Name, synced, h.Pending, oldest, h.Calls, perCall(i, h, facts), h.Panics)
	}
}

// perCall returns how long the calls of a handler take, if that was recorded.
func perCall(i Informer, h HandlerInfo, facts *journal.Facts) string {
	if facts != nil {
		for _, known := range facts.Handlers {
			if known.Informer == i.Name && known.Handler == h.Name && known.Calls > 0 {
				mean := known.Time / time.Duration(known.Calls)
				return fmt.Sprintf(" of %s", mean.Round(time.Microsecond))
			}
		}
	}
	return ""
}

// memory returns the bytes of an informer's objects, if they are known, and the largest fields if
// they are many.
func memory(i Informer) string {
	if i.Bytes == 0 {
		return ""
	}
	text := " of about " + bytesText(i.Bytes)
	if i.Bytes >= unreadBytes {
		for n, f := range i.Largest {
			before := ": "
			if n > 0 {
				before = ", "
			}
			text += fmt.Sprintf("%s%s %.0f %%", before, printable.Short(f.Path), 100*f.Share)
		}
	}
	if i.Unread {
		text += "; never read"
	}
	return text
}

func (t *text) controller(c Controller) {
	t.head("controller %s: %s", c.Name, c.Phase)
	for _, cache := range c.Missing {
		t.line("  waits for cache %s%s", cache.Name, withColon(cache.Error))
	}
	var outcomes []string
	for _, outcome := range slices.Sorted(maps.Keys(c.Outcomes)) {
		outcomes = append(outcomes, fmt.Sprintf("%s %d", outcome, c.Outcomes[outcome]))
	}
	if len(outcomes) > 0 {
		t.line("  reconciled: %s", strings.Join(outcomes, ", "))
	}
	if c.Evicted > 0 || c.KeyErrors > 0 {
		t.line("  dead letters dropped: %d, notifications without a key: %d", c.Evicted,
			c.KeyErrors)
	}
	keys(t, "ready", c.Ready, func(key string) string { return key + c.place(key) })
	keys(t, "running", c.Running, func(k RunningKey) string {
		return fmt.Sprintf("%s since %s (reconcileID %s)", k.Key, short(t.now.Sub(k.Since)),
			k.ReconcileID)
	})
	keys(t, "waiting", c.Waiting, func(w WaitingKey) string {
		return t.waits(w, failures) + c.priority(w.Key)
	})
	t.lastDue(c.Waiting, c.LastDue)
	keys(t, "failing", c.Failing, func(k FailingKey) string {
		return fmt.Sprintf("%s %d times since %s, last %s: %s",
			k.Key, k.Attempts, short(t.now.Sub(k.Since)), t.ago(&k.Last), k.LastError)
	})
	keys(t, "dead letters", c.DeadLetters, func(d DeadLetter) string {
		return fmt.Sprintf("%s %s after %d attempts, last %s: %s",
			d.Key, d.Reason, d.Attempts, t.ago(&d.Last), d.LastError)
	})
	t.groupsOf(c.Order)
}

func (t *text) queue(q Queue) {
	t.head("queue %s", q.Name)
	same := func(key string) string { return key }
	keys(t, "ready", q.Ready, func(key string) string { return key + q.place(key) })
	keys(t, "processing", q.Processing, same)
	keys(t, "again", q.Again, same)
	keys(t, "waiting", q.Waiting, func(w WaitingKey) string {
		return t.waits(w, rateLimited) + q.priority(w.Key)
	})
	t.lastDue(q.Waiting, q.LastDue)
	t.groupsOf(q.Order)
}

// groupsOf writes the groups of a queue.
func (t *text) groupsOf(o Order) {
	if o.GroupCount == 0 {
		return
	}
	keys(t, "groups", List[KeyGroup]{Total: o.GroupCount, Items: o.Groups},
		func(g KeyGroup) string {
			return fmt.Sprintf("%s: %d queued, %s", g.Name, g.Queued, g.working())
		})
}

// working says how many keys of a group workers have.
func (g KeyGroup) working() string {
	if g.Workers > 0 {
		return fmt.Sprintf("%d of %s", g.Working, plural(g.Workers, "worker"))
	}
	return plural(g.Working, "worker")
}

// priority returns the priority of a key behind it.
func (o Order) priority(key string) string {
	if priority, ok := o.Priorities[key]; ok {
		return fmt.Sprintf(" (priority %d)", priority)
	}
	return ""
}

// place returns the priority of a ready key behind it, and why no worker may get it.
func (o Order) place(key string) string {
	if group, held := o.Held[key]; held {
		return o.priority(key) + " (" + group.heldText() + ")"
	}
	return o.priority(key)
}

// heldText says why a group is held.
func (g KeyGroup) heldText() string {
	return fmt.Sprintf("its group %s has %s", g.Name, g.working())
}

func (t *text) election(e Election) {
	leads := "does not lead"
	if e.Leading {
		leads = "leads"
	}
	t.head("election %s: %s, this process %s; the leader is %s", e.Name, e.Phase, leads,
		orNone(e.Leader))
	t.line("  last renewal %s", t.ago(e.LastRenewal))
	if e.LastError != "" {
		t.line("  last error: %s", e.LastError)
	}
}

func (t *text) journal(f journal.Facts) {
	t.head("recorded for %s: reconciles with their causes, see --why KEY or ?why=KEY",
		short(t.now.Sub(f.Since)))
	if f.TooMany > 0 {
		t.line("  whether requests wait for the limiter of their own client is not known: the "+
			"program has %d goroutines, too many to look at", f.TooMany)
	}
	for _, a := range f.Arrows {
		t.line("  informer %s -> handler %s -> queue %s: %s added", a.Informer, a.Handler,
			a.Queue, plural(a.Adds, "key"))
	}
	for _, q := range f.Queues {
		t.line("  queue %s: %s, the median %s", q.Queue, plural(q.Reconciles, "reconcile"),
			q.Median.Round(time.Microsecond))
	}
}

func (t *text) waits(w WaitingKey, count func(n int) string) string {
	line := fmt.Sprintf("%s due in %s", w.Key, short(w.Due.Sub(t.now)))
	if w.Attempts > 0 {
		line += ", after " + count(w.Attempts)
	}
	return line
}

// lastDue writes the longest wait, if the list does not end with it.
func (t *text) lastDue(l List[WaitingKey], at *time.Time) {
	if at != nil && l.more() > 0 && len(l.Items) > 0 {
		t.line("    the last is due in %s, at %s", short(at.Sub(t.now)), at.Format(time.RFC3339))
	}
}

// keys writes a list, one item per line.
func keys[T any](t *text, name string, l List[T], describe func(T) string) {
	from := ""
	switch {
	case l.Before > 0 && len(l.Items) > 0:
		from = fmt.Sprintf(", from number %d", l.Before+1)
	case l.Before > 0 && l.Before == l.Total:
		from = ", all before the number that was asked for"
	case l.kept:
		from = ", and the recording has only those before the number that was asked for"
	}
	t.line("  %s: %d%s", name, l.Total, from)
	for _, item := range l.Items {
		t.line("    %s", describe(item))
	}
	if more := l.more(); more > 0 && len(l.Items) > 0 {
		t.line("    and %d more", more)
	}
}

func (t *text) ago(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return short(t.now.Sub(*at)) + " ago"
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

func withColon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// firstOf joins the first names, at most limit.
func firstOf(names []string, limit int) string {
	if more := len(names) - limit; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), more)
	}
	return strings.Join(names, ", ")
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func orNone(leader string) string {
	if leader == "" {
		return "no process that it knows"
	}
	return leader
}
