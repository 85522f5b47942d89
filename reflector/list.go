// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/helpers/async"
	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/reflector/starts"
)

// listed is the content of a collection at one resourceVersion.
type listed struct {
	items           []any
	resourceVersion string
	asOf            time.Time // zero if it is that of the last version
	paged           bool
	inferred        error // of a Selection, or why it is known to be empty
}

// list fetches everything by LIST and replaces the store's content with it.
func (r *Reflector) list(ctx context.Context) error {
	requested := r.listResourceVersion()
	if r.round.limit < 0 {
		r.round.limit = r.limitFor(requested)
	}
	limit := r.round.limit
	start := r.opts.Clock.Now()
	count(r.opts.Metrics.Lists)
	r.forgetRelist(ctx)
	fetchCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := async.Call(func() (listed, error) { return r.fetch(fetchCtx, requested, limit) })
	o, err := r.awaitList(ctx, answer)
	if err != nil {
		return err
	}
	got, err := o.Unpack()
	took := r.opts.Clock.Since(start)
	report(r.opts.Metrics.ListDuration, took)
	if took >= slowListThreshold {
		r.log(ctx).Info("LIST was slow", "took", took, "count", len(got.items), "err", bounded(err))
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("failed to list %v: %w", r.TypeDescription(), err)
	}
	report(r.opts.Metrics.ItemsInList, len(got.items))
	if requested == "0" && got.paged {
		r.paginated = true
	}
	if limit > 0 && requested != "" && requested != "0" && got.resourceVersion == requested &&
		got.inferred == nil {
		got.asOf = time.Time{} // pages at a version hold exactly that state, which may be old
	}
	return r.replace(got)
}

// awaitList waits for the answer while objects arrive, see Options.ListDeadline.
func (r *Reflector) awaitList(
	ctx context.Context, answer <-chan async.Outcome[listed],
) (o async.Outcome[listed], err error) {
	patience := cmp.Or(max(r.opts.ListDeadline, 0), forever)
	timer := r.opts.Clock.NewTimer(patience)
	defer timer.Stop()
	for {
		before := r.arrived.Load()
		if o, _, err = receive(ctx, r, answer, timer.C()); err != errTimeout {
			return o, err
		}
		if r.arrived.Load() == before {
			return async.Outcome[listed]{Err: fmt.Errorf("%w for %v", ErrListSilent, patience)}, nil
		}
		timer.Reset(patience)
	}
}

// replace makes the store hold exactly what was fetched, and then moves on to its resourceVersion.
func (r *Reflector) replace(got listed) error {
	r.empty.listed(got.items, r.LastSyncResourceVersion()) // before the store owns the items
	handover := freshness.Handover{
		Kind: freshness.List, ResourceVersion: got.resourceVersion, At: got.asOf,
		Losses: r.round.losses, Inferred: got.inferred,
	}
	r.freshness.Begin(handover)
	err := r.store.Replace(got.items, got.resourceVersion)
	if r.freshness.End(handover, err); err != nil {
		return &ApplyError{Verb: "replace", Err: err}
	}
	r.unavailable = false
	r.question.named, r.question.restored = namedVersion{}, false
	if r.opts.Metrics.LastResourceVersion != nil {
		r.reportVersion(got.resourceVersion)
	}
	r.round.fetched, r.round.inferred = true, got.inferred != nil
	if r.opts.ResyncPeriod > 0 && r.round.resync == nil {
		r.round.resync = r.opts.Clock.NewTimer(r.opts.ResyncPeriod)
	}
	return nil
}

// reselect replaces the store's content with that of another selection.
func (r *Reflector) reselect(ctx context.Context, s *Selection) error {
	if now := r.opts.Clock.Now(); s.Inferred == nil {
		r.contact.Store(&now)
		count(r.opts.Metrics.Lists)
		report(r.opts.Metrics.ListDuration, now.Sub(s.AsOf))
		report(r.opts.Metrics.ItemsInList, len(s.Items))
	}
	got := listed{resourceVersion: s.ResourceVersion, asOf: s.AsOf, inferred: s.Inferred}
	for _, item := range s.Items {
		if err := r.collect(ctx, &got, item); err != nil {
			return fmt.Errorf("select other %v: %w", r.TypeDescription(), err)
		}
	}
	return r.replace(got)
}

// listResourceVersion is the state that a LIST must not be older than. "0" is any state: whatever
// the server has at hand. "" is the newest, which costs a read from etcd.
func (r *Reflector) listResourceVersion() string {
	switch last := r.LastSyncResourceVersion(); {
	case r.unavailable:
		return ""
	case last == "":
		return "0"
	default:
		return last
	}
}

// limitFor returns the limit of each page of a round whose first LIST is at resourceVersion, or 0
// for no pages.
//
// The server's watch cache serves a LIST at a resourceVersion if it has no limit; after an outage
// all clients ask for that at once, and etcd must be spared. At "0" the cache ignores the limit,
// and "" reads from etcd in any case.
func (r *Reflector) limitFor(resourceVersion string) int64 {
	switch {
	case r.opts.WatchListPageSize != 0:
		return r.opts.WatchListPageSize
	case !r.paginated && resourceVersion != "" && resourceVersion != "0":
		return 0
	}
	return defaultPageSize
}

// fetch lists everything at resourceVersion, page by page. It runs in a goroutine of its own, which
// outlives its caller if the server does not answer. So it changes nothing of r but arrived and
// Status.LastContact.
//
// If the pages cannot be completed, only a list without pages is consistent.
func (r *Reflector) fetch(
	ctx context.Context, resourceVersion string, limit int64,
) (listed, error) {
	got, err := r.fetchPages(ctx, resourceVersion, limit)
	if errors.Is(err, errIncompletePages) {
		r.log(ctx).Info("LIST cannot be completed page by page, listing without pages", "err", err)
		got, err = r.fetchPages(ctx, resourceVersion, 0)
		got.paged = true
	}
	return got, err
}

// errIncompletePages is the end of a LIST after its first page: the server has forgotten the state
// that the pages show (410), or it would send the same pages without end.
var errIncompletePages = errors.New("pages of the list are incomplete")

// fetchPages lists everything at resourceVersion. Only the first page names the resourceVersion:
// the server has the later ones at the same, which is in the continue token.
func (r *Reflector) fetchPages(
	ctx context.Context, resourceVersion string, limit int64,
) (listed, error) {
	got := listed{asOf: r.opts.Clock.Now()}
	collect := func(item runtime.Object) error { return r.collect(ctx, &got, item) }
	var tokens listwatch.ContinueTokens
	options := metav1.ListOptions{ResourceVersion: resourceVersion, Limit: limit}
	for {
		page, err := r.fetchPage(ctx, options, collect)
		if empty, ok := errors.AsType[*KnownEmptyError](err); ok {
			return listed{
				resourceVersion: page.ResourceVersion, asOf: empty.AsOf, inferred: empty.Why,
			}, nil
		}
		switch {
		case options.Continue != "" && isExpired(err):
			return listed{}, fmt.Errorf("%w: %w", errIncompletePages, err)
		case err != nil:
			return listed{}, err
		}
		if tokens.Repeat(page.Continue) {
			return listed{}, fmt.Errorf("%w: server repeated the continue token %.64q",
				errIncompletePages, page.Continue)
		}
		if options.Continue == "" {
			got.resourceVersion = page.ResourceVersion
		}
		if page.Continue == "" {
			return got, nil
		}
		got.paged = true
		options = metav1.ListOptions{Limit: limit, Continue: page.Continue}
	}
}

// collect checks and transforms an item of a list.
func (r *Reflector) collect(ctx context.Context, got *listed, item runtime.Object) error {
	if err := ctx.Err(); err != nil {
		return err // the list was given up
	}
	if err := r.expected.checkItem(item); err != nil {
		return err
	}
	obj, err := any(item), error(nil)
	if r.opts.Transform != nil {
		obj, err = r.transformed(ctx, item)
	}
	if err == nil {
		got.items = append(got.items, obj)
		r.arrived.Add(1)
	}
	return err
}

// fetchPage lists one page and calls each with its items.
func (r *Reflector) fetchPage(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	if err := ctx.Err(); err != nil {
		return metav1.ListMeta{}, err
	}
	return listPage(ctx, r.listerWatcher, r.expected, options, each, r.noteAnswer)
}

// ListPage lists one page of what lw selects, and calls each with its items. It uses ListStream if
// lw is a StreamLister. It fails if the page is no list, or an empty one of other objects than
// example, which is as in New; the items are not checked. It returns the first error of each.
func ListPage(
	ctx context.Context, lw ListerWatcher, example any, options metav1.ListOptions,
	each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	return listPage(ctx, lw, newExpected(example), options, each, func(error) {})
}

// listPage is ListPage; answered is called with the error of the request.
func listPage(
	ctx context.Context, lw ListerWatcher, e expected, options metav1.ListOptions,
	each func(runtime.Object) error, answered func(error),
) (metav1.ListMeta, error) {
	if streamer, ok := lw.(StreamLister); ok {
		m, err := streamer.ListStream(ctx, options, each)
		answered(err)
		return m, err
	}
	list, err := lw.ListWithContext(ctx, options)
	answered(err)
	if err == nil && objects.IsNil(list) {
		err = fmt.Errorf("ListerWatcher returned no list: %w", errNilResult)
	}
	if err != nil {
		return metav1.ListMeta{}, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return metav1.ListMeta{}, fmt.Errorf("understand list %T: %w", list, err)
	}
	if err := e.checkList(list); err != nil {
		return metav1.ListMeta{}, err
	}
	got := metav1.ListMeta{ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue(),
		RemainingItemCount: m.GetRemainingItemCount()}
	// WithAlloc, so that one object that lives on does not keep the whole list in memory.
	return got, meta.EachListItemWithAlloc(list, each)
}

// inTurn calls fetch, which fetches everything in the phase now, when Options.Starts allows it.
func (r *Reflector) inTurn(
	ctx context.Context, now Phase, fetch func(context.Context) error,
) error {
	if r.opts.Starts != nil {
		r.setPhase(AwaitingTurn)
		end, err := r.opts.Starts.Await(ctx, r.countObjects)
		if err != nil {
			return err
		}
		defer end()
		r.setPhase(now)
	}
	return fetch(ctx)
}

// errSecondObject ends a LIST of one object that brings more: the server ignores the limit.
var errSecondObject = errors.New("more than one object")

// countObjects asks the server for the number of objects.
func (r *Reflector) countObjects(ctx context.Context) int64 {
	answer := async.Call(func() (int64, error) {
		count := int64(0)
		m, err := r.fetchPage(ctx, listwatch.Question(), func(runtime.Object) error {
			if count++; count > 1 {
				return errSecondObject
			}
			return nil
		})
		switch {
		case err != nil, m.Continue != "" && m.RemainingItemCount == nil:
			return starts.Unknown, err
		case m.RemainingItemCount != nil:
			count += *m.RemainingItemCount
		}
		return count, nil
	})
	select {
	case o := <-answer:
		if objects, err := o.Unpack(); err == nil {
			return objects
		}
	case <-ctx.Done():
	}
	return starts.Unknown
}
