// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// listed is the content of a collection at one resourceVersion.
type listed struct {
	items           []any
	resourceVersion string
	pageCount       int
	asOf            time.Time // see Status.CurrentAsOf
}

// list fetches everything by LIST and replaces the store's content with it.
func (r *Reflector) list(ctx context.Context) error {
	requested := r.listResourceVersion()
	if r.limit < 0 {
		r.limit = r.limitFor(requested)
	}
	limit := r.limit
	start := r.clock.Now()
	inc(r.metrics.lists)
	r.forgetRelist(ctx)
	var got listed
	var err error
	select {
	case <-ctx.Done():
		return ctx.Err()
	case o := <-call(func() (listed, error) { return r.fetch(ctx, requested, limit) }):
		got, err = o.unpack()
	}
	took := r.clock.Since(start)
	observe(r.metrics.listDuration, took.Seconds())
	if took >= slowListThreshold {
		klog.FromContext(ctx).Info("LIST was slow", "reflector", r.name, "type", r.typeDescription, "took", took, "count", len(got.items), "err", err)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("failed to list %v: %w", r.typeDescription, err)
	}
	observe(r.metrics.itemsInList, float64(len(got.items)))
	if requested == "0" && got.pageCount > 1 {
		r.paginated = true
	}
	return r.replace(got)
}

// replace makes the store hold exactly what was fetched, and only then moves on to its resourceVersion.
func (r *Reflector) replace(got listed) error {
	if err := r.store.Replace(got.items, got.resourceVersion); err != nil {
		return &ApplyError{Verb: "replace", Err: err}
	}
	r.unavailable = false
	r.setResourceVersion(got.resourceVersion, got.asOf)
	r.fetched = true
	r.startResync()
	return nil
}

// listResourceVersion is the state that a LIST must not be older than. "0" is any state: whatever the server has at
// hand. "" is the newest, which costs a read from etcd.
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

// limitFor returns the limit of each page of a round whose first LIST is at resourceVersion, or 0 for no pages.
//
// The server's watch cache serves a LIST at a resourceVersion if it has no limit; after an outage all clients ask for
// that at once, and etcd must be spared. At "0" the cache ignores the limit, and "" reads from etcd in any case.
func (r *Reflector) limitFor(resourceVersion string) int64 {
	switch {
	case r.pageSize != 0:
		return r.pageSize
	case !r.paginated && resourceVersion != "" && resourceVersion != "0":
		return 0
	}
	return defaultPageSize
}

// fetch lists everything at resourceVersion, page by page. It runs in a goroutine of its own, which outlives its caller's
// interest if the server does not answer, and so it changes nothing of r but Status.LastContact.
//
// Only the first page names a resourceVersion; the server has the later ones at the same, which is in the token. If it
// forgets that state meanwhile (410), nothing but a list without pages can still be consistent.
func (r *Reflector) fetch(ctx context.Context, resourceVersion string, limit int64) (listed, error) {
	got := listed{asOf: r.clock.Now()}
	collect := func(item runtime.Object) error {
		obj, err := r.receive(ctx, item)
		if err == nil {
			got.items = append(got.items, obj)
		}
		return err
	}
	options := metav1.ListOptions{ResourceVersion: resourceVersion, Limit: limit}
	for first := true; ; first = false {
		page, err := r.fetchPage(ctx, options, collect)
		if options.Continue != "" && isExpired(err) {
			got, first = listed{asOf: r.clock.Now(), pageCount: got.pageCount}, true
			page, err = r.fetchPage(ctx, metav1.ListOptions{ResourceVersion: resourceVersion}, collect)
			page.Continue = ""
		}
		if err != nil {
			return listed{}, err
		}
		got.pageCount++
		if first {
			got.resourceVersion = page.ResourceVersion
		}
		if page.Continue == "" {
			return got, nil
		}
		options = metav1.ListOptions{Limit: limit, Continue: page.Continue}
	}
}

// fetchPage lists one page and calls each with its items.
func (r *Reflector) fetchPage(ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error) (metav1.ListMeta, error) {
	if err := ctx.Err(); err != nil {
		return metav1.ListMeta{}, err
	}
	if streamer, ok := r.listerWatcher.(StreamLister); ok {
		m, err := streamer.ListStream(ctx, options, each)
		r.noteAnswer(err)
		return m, err
	}
	list, err := r.listerWatcher.ListWithContext(ctx, options)
	r.noteAnswer(err)
	switch {
	case err != nil:
		return metav1.ListMeta{}, err
	case isNil(list):
		return metav1.ListMeta{}, fmt.Errorf("ListerWatcher returned no list: %w", errNilResult)
	case isTable(list):
		return metav1.ListMeta{}, fmt.Errorf("unsupported list %v: %w", list.GetObjectKind().GroupVersionKind(), errTable)
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return metav1.ListMeta{}, fmt.Errorf("understand list %T: %w", list, err)
	}
	// WithAlloc, so that one object that lives on does not keep the whole list in memory.
	if err := meta.EachListItemWithAlloc(list, each); err != nil {
		return metav1.ListMeta{}, err
	}
	return metav1.ListMeta{ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue()}, nil
}

// receive checks and transforms an item of a list.
func (r *Reflector) receive(ctx context.Context, item runtime.Object) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // nobody waits for this list any more
	}
	if err := r.expected.checkType(item); err != nil {
		return nil, fmt.Errorf("understand list item: %w", err)
	}
	return r.transformed(item)
}
