// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/observe/sizes"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// Page is the content of /debug/informers. Its texts are truncated after 1,024 characters.
type Page struct {
	Time        time.Time    `json:"time"`
	Program     string       `json:"program"`
	Informers   []Informer   `json:"informers"`
	Controllers []Controller `json:"controllers"`
	Queues      []Queue      `json:"queues"`
	Elections   []Election   `json:"elections,omitempty"`
	Groups      []Group      `json:"groups,omitempty"` // of replicas, see package shard
	Kinds       []Kind       `json:"kinds,omitempty"`  // that informers follow

	// Findings say what is wrong. Journal is nil without SetJournal.
	Findings []Finding      `json:"findings"`
	Journal  *journal.Facts `json:"journal,omitempty"`
}

// Informer is an informer on the page.
type Informer struct {
	Name string `json:"name"`
	// Selection has the resource, the namespace and the selectors. It is "" if they are not known:
	// the client of the informer has them, in a function.
	Selection       string          `json:"selection,omitempty"`
	Started         bool            `json:"started"`
	Synced          bool            `json:"synced"`
	Stopped         bool            `json:"stopped"`
	Objects         int             `json:"objects"`
	Phase           reflector.Phase `json:"phase,omitempty"`
	ResourceVersion string          `json:"resourceVersion,omitempty"`

	// CurrentAsOf is the time up to which the store has all changes; nil if it is not known.
	CurrentAsOf  *time.Time `json:"currentAsOf,omitempty"`
	LastContact  *time.Time `json:"lastContact,omitempty"`
	LastEvent    *time.Time `json:"lastEvent,omitempty"`
	LastBookmark *time.Time `json:"lastBookmark,omitempty"`

	Failures            int        `json:"failures"`
	ConsecutiveFailures int        `json:"consecutiveFailures"`
	Fallbacks           int        `json:"watchListFallbacks"`
	LastError           string     `json:"lastError,omitempty"`
	LastErrorTime       *time.Time `json:"lastErrorTime,omitempty"`

	// TransformingSince and StoringSince are when the present call of the transform, and the
	// present storing of changes, began; nil if nothing is under way.
	TransformingSince *time.Time `json:"transformingSince,omitempty"`
	StoringSince      *time.Time `json:"storingSince,omitempty"`

	// Bytes is the estimated memory of all objects, and Largest the fields that take most of it, as
	// of sizes.Sizes. It is 0 if it is not known, also while it is being measured.
	Bytes   int64         `json:"bytes"`
	Largest []sizes.Field `json:"largestFields,omitempty"`
	// Unread is true if it is known that nothing has read the store, except the informer itself.
	Unread bool `json:"unread"`

	Handlers []HandlerInfo `json:"handlers"`

	selection informer.Collection // Selection
	added     time.Time           // when it was added to the page
	// startedOrNot is since when the page has seen the present value of Started.
	startedOrNot time.Time
	store        store.Store  // nil if it cannot be read
	meter        *sizes.Meter // of the store
	sizes        sizes.Sizes
}

// HandlerInfo is a handler of an informer.
type HandlerInfo struct {
	Name                 string  `json:"name"`
	Synced               bool    `json:"synced"`
	Pending              int     `json:"pending"`
	OldestPendingSeconds float64 `json:"oldestPendingSeconds"`
	Calls                int     `json:"calls"`
	Panics               int     `json:"panics"`

	// sameSince is when the page first saw that so many calls had ended and another was due or
	// running.
	sameSince time.Time
}

// runsSince returns since when the present call of the handler runs, or a later time if its
// beginning is not known.
func (h HandlerInfo) runsSince(i Informer, facts journal.Facts) time.Time {
	for _, known := range facts.Handlers {
		if running := known.Running; running != nil && known.Informer == i.Name &&
			known.Handler == h.Name && running.Time.Before(h.sameSince) {
			return running.Time
		}
	}
	return h.sameSince
}

// Queue is a workqueue on the page. Keys are printed with %v.
type Queue struct {
	Name       string           `json:"name"`
	Ready      List[string]     `json:"ready"`
	Processing List[string]     `json:"processing"`
	Again      List[string]     `json:"again"` // keys in Processing that were added again since
	Waiting    List[WaitingKey] `json:"waiting"`
	// LastDue is when the last key of Waiting is due; nil if none waits, or not known.
	LastDue *time.Time `json:"lastDue,omitempty"`
	Order

	workers    func() map[string]journal.Worker // nil if they are not known
	unserved   unserved
	isShutDown bool // then it drops what is added
}

// Order is what decides which of the ready keys of a queue is next, beside their order.
type Order struct {
	// Priorities are those of ready and waiting keys that are not 0, in a queue with priorities.
	Priorities map[string]int `json:"priorities,omitempty"`
	// Groups are the groups with the most queued keys, the most first, of all GroupCount.
	Groups     []KeyGroup `json:"groups,omitempty"`
	GroupCount int        `json:"groupCount,omitempty"`
	// Held are the ready keys that no worker may get now: their group has as many workers as it
	// may.
	Held map[string]KeyGroup `json:"held,omitempty"`
}

// KeyGroup is a group of the keys of a queue.
type KeyGroup struct {
	Name    string `json:"name"`
	Queued  int    `json:"queued"`
	Working int    `json:"working"`           // keys that workers have
	Workers int    `json:"workers,omitempty"` // the most keys that workers may have, or 0
}

// WaitingKey is a key with a delay.
type WaitingKey struct {
	Key      string    `json:"key"`
	Due      time.Time `json:"due"`
	Attempts int       `json:"attempts"` // calls of AddRateLimited that the limiter remembers
}

// Controller is a controller on the page, with its queue.
type Controller struct {
	Name    string           `json:"name"`
	Phase   controller.Phase `json:"phase"`
	Missing []MissingCache   `json:"missingCaches,omitempty"`
	Ready   List[string]     `json:"ready"`
	Running List[RunningKey] `json:"running"`
	Waiting List[WaitingKey] `json:"waiting"`
	LastDue *time.Time       `json:"lastDue,omitempty"` // as of a Queue
	Order
	Failing     List[FailingKey]  `json:"failing"`
	DeadLetters List[DeadLetter]  `json:"deadLetters"`
	Evicted     uint64            `json:"evicted"`
	KeyErrors   uint64            `json:"keyErrors"`
	Outcomes    map[string]uint64 `json:"outcomes"`
}

// Election is an elector on the page.
type Election struct {
	Name    string               `json:"name"`
	Phase   leaderelection.Phase `json:"phase"`
	Leading bool                 `json:"leading"`
	Leader  string               `json:"leader,omitempty"`

	// RetryPeriod is the time between two renewals; 0 if it is not known.
	RetryPeriod time.Duration `json:"retryPeriodNanoseconds,omitempty"`
	LastRenewal *time.Time    `json:"lastRenewal,omitempty"`
	LastError   string        `json:"lastError,omitempty"`
	// LastErrorTime is when that attempt failed. It may be before LastRenewal.
	LastErrorTime *time.Time `json:"lastErrorTime,omitempty"`
}

// errorSince returns the error of the last attempt since the last renewal, or a remark.
func (e Election) errorSince() string {
	if e.LastErrorTime != nil && e.LastErrorTime.After(*e.LastRenewal) {
		return ": " + e.LastError
	}
	return "; no attempt has failed since: the request may wait for its answer"
}

// late reports whether this process leads, and has missed its renewals.
func (e Election) late(now time.Time) bool {
	return e.Leading && e.LastRenewal != nil &&
		now.Sub(*e.LastRenewal) > cmp.Or(missedRenewals*e.RetryPeriod, lateRenewal)
}

// MissingCache is a cache that a controller waits for.
type MissingCache struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
}

// RunningKey is a key that is being reconciled.
type RunningKey struct {
	Key         string    `json:"key"`
	ReconcileID string    `json:"reconcileID"`
	Since       time.Time `json:"since"`
}

// FailingKey is a key that failed, see controller.FailedKey, and will be retried.
type FailingKey struct {
	Key       string    `json:"key"`
	Attempts  int       `json:"attempts"`
	Since     time.Time `json:"since"`
	Last      time.Time `json:"last"`
	LastError string    `json:"lastError"`
}

// DeadLetter is a key that the controller no longer retries.
type DeadLetter struct {
	Key       string            `json:"key"`
	Reason    controller.Reason `json:"reason"`
	Attempts  int               `json:"attempts"`
	Since     time.Time         `json:"since"`
	Last      time.Time         `json:"last"`
	LastError string            `json:"lastError"`
}

// leads reports whether this process leads in all its elections, if it has any.
func (p Page) leads() bool {
	return !slices.ContainsFunc(p.Elections, func(e Election) bool { return !e.Leading })
}

// synced reports whether all informers that run have their lists.
func (p Page) synced() bool {
	return !slices.ContainsFunc(p.Informers, func(i Informer) bool {
		return i.Started && !i.Stopped && !i.Synced
	})
}

// queuesNamed returns the number of queues with a name: a journal knows them by it.
func (p Page) queuesNamed(name string) (n int) {
	for _, q := range p.Queues {
		if q.Name == name {
			n++
		}
	}
	return n
}

// List is a part of a list of Total items: its beginning, or a page.
type List[T any] struct {
	Total  int `json:"total"`
	Before int `json:"before,omitempty"` // items of the list that are before Items
	Items  []T `json:"items"`

	numbers []int // the places of Items in the list, from 1; nil if they are not known
	kept    bool  // Items is empty because a recording has only items before it
}

// page returns the items that are wanted of the beginning of a list.
func (l List[T]) page(w wanted) List[T] {
	return List[T]{Total: l.Total, Before: min(w.skip, l.Total), Items: page(l.Items, w),
		kept: w.skip > 0 && len(l.Items) <= w.skip && w.skip < l.Total}
}

// more is the number of items after Items.
func (l List[T]) more() int { return l.Total - l.Before - len(l.Items) }

const (
	// defaultLimit is the number of items shown of each list if the request has no limit, and
	// maxLimit the largest number that a request gets.
	defaultLimit, maxLimit = 100, 10_000
	// maxReasons bounds the keys with reasons, which are much larger than the other lists.
	maxReasons = 100
)

// Page returns the present state of everything that was added, with whole lists, and the reasons of
// the hundred keys that were reconciled most often in the last minutes.
func (h *Handler) Page() Page { return h.page(math.MaxInt) }

func programName() string { return printable.Short(filepath.Base(os.Args[0])) }

// snapshot reads the informers before the queues: a change that moves on is seen twice, not missed.
func (h *Handler) snapshot(w wanted) Page {
	return Page{
		Time:        time.Now(),
		Program:     programName(),
		Informers:   each(current(h, &h.informers), w),
		Queues:      each(current(h, &h.queues), w),
		Controllers: each(current(h, &h.controllers), w),
		Elections:   each(current(h, &h.elections), w),
		Groups:      each(current(h, &h.groups), w),
		Kinds:       h.kindsOf(w),
	}
}

// page is Page with at most limit items of each list.
func (h *Handler) page(limit int) Page {
	p := h.snapshot(wanted{limit: limit})
	measure(p.Informers)
	facts := journal.Facts{}
	if j := h.recording(); j != nil {
		facts = j.Facts(maxReasons)
	}
	p.Findings = findings(p, facts)
	if facts.Recording {
		facts.Keys = facts.Keys[:min(limit, len(facts.Keys))]
		p.Journal = &facts
	}
	return p
}

func each[T any](snapshots []*func(wanted) T, w wanted) []T {
	all := make([]T, 0, len(snapshots))
	for _, snapshot := range snapshots {
		all = append(all, (*snapshot)(w))
	}
	return all
}

// servePage answers with a web page, JSON or text, as ?format= or the Accept header asks for. It
// answers about a key if ?why=KEY asks for it, and with a page of the keys of a queue if
// ?queue=NAME&from=NUMBER does.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request) {
	if refusal := h.refusal(r); refusal != "" {
		answer(w, http.StatusForbidden, refusal)
		return
	}
	format := r.URL.Query().Get("format")
	switch {
	case format == "" && accepts(r, "application/json"):
		format = "json"
	case format == "" && accepts(r, "text/html") && !r.URL.Query().Has("why") &&
		!r.URL.Query().Has("queue"):
		format = "html"
	case format == "":
		format = "text"
	}
	switch format {
	case "html":
		serveWeb(w)
		return
	case "text", "json":
	default:
		answer(w, http.StatusBadRequest,
			fmt.Sprintf("format=%q: want text, json or html\n", format))
		return
	}
	page, err := h.asked(w, r)
	switch {
	case err != nil:
		answer(w, http.StatusBadRequest, err.Error()+"\n")
	case format == "text":
		answer(w, http.StatusOK, page.String())
	default:
		encode := func(page any) ([]byte, error) { return json.MarshalIndent(page, "", "  ") }
		if r.URL.Query().Has("brief") {
			encode = json.Marshal
		}
		text, err := encode(page)
		if err != nil {
			answer(w, http.StatusInternalServerError, fmt.Sprintf("encode page: %v\n", err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer(w, http.StatusOK, string(printable.JSON(text))+"\n")
	}
}

// asked returns the Page or the Answer that a request asks for.
func (h *Handler) asked(w http.ResponseWriter, r *http.Request) (fmt.Stringer, error) {
	query := r.URL.Query()
	key, queue := query.Get("why"), query.Get("queue")
	limit, err := number(query, "limit", defaultLimit, 0)
	from, err2 := number(query, "from", 1, 1)
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	asked := wanted{skip: from - 1, limit: min(limit, maxLimit), queue: queue}
	switch {
	case query.Has("why") && key == "":
		return nil, errors.New("why is empty: want a key, such as namespace/name")
	case query.Has("from") && queue == "":
		return nil, errors.New("from has no effect without queue: want the name of one")
	case len(h.frames) > 0:
		page, err := h.frame(w, r)
		switch {
		case err == nil && key != "":
			return page.Why(key), nil
		case err == nil && queue != "":
			page, err = page.only(queue)
		}
		return page.limited(asked), err
	case key != "":
		return h.why(key, query.Get("stacks") == "1"), nil
	case queue != "":
		return h.pageOf(asked)
	}
	page := h.page(asked.limit)
	if query.Has("brief") {
		page.shorten()
	}
	return page, nil
}

// number returns a parameter of a question, which is least or more, or without it is standard.
func number(query url.Values, name string, standard, least int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, fmt.Errorf("%s=%q: want a number, %d or more", name, text, least)
	}
	return n, nil
}

// shorten leaves the last reconcile of each key: the web page, which asks every two seconds, shows
// no other.
func (p Page) shorten() {
	if p.Journal == nil {
		return
	}
	for i := range p.Journal.Keys {
		last := &p.Journal.Keys[i].Last
		*last = (*last)[:min(1, len(*last))]
	}
}

// accepts reports whether the Accept header names a media type.
func accepts(r *http.Request, wanted string) bool {
	header := strings.Join(r.Header.Values("Accept"), ",")
	for accepted := range strings.SplitSeq(header, ",") {
		if mediaType, _, err := mime.ParseMediaType(accepted); err == nil && mediaType == wanted {
			return true
		}
	}
	return false
}
