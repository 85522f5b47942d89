// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// TypedRateLimitingQueue is a delaying queue that asks a limiter how long an item has to wait.
//
// After a failure a worker calls AddRateLimited or AddFailed. After success, or when it gives the
// item up, it calls Forget. In both cases it then calls Done.
type TypedRateLimitingQueue[T comparable] struct {
	// TypedDelayingQueue gets each item, with the limiter's delay.
	*TypedDelayingQueue[T]
	limiter TypedRateLimiter[T]
}

// NewTypedRateLimitingQueue returns a rate-limiting queue. If rateLimiter is nil, AddRateLimited,
// AddFailed, Forget and NumRequeues panic.
func NewTypedRateLimitingQueue[T comparable](
	rateLimiter TypedRateLimiter[T], config Config[T],
) *TypedRateLimitingQueue[T] {
	return &TypedRateLimitingQueue[T]{NewTypedDelayingQueue(config), rateLimiter}
}

// AddRateLimited counts a failure of item and adds it after the limiter's delay.
func (q *TypedRateLimitingQueue[T]) AddRateLimited(item T) {
	q.AddAfter(item, q.limiter.When(item))
}

// AddFailed is AddRateLimited for a caller that knows the error: an ErrorRateLimiter decides by it.
func (q *TypedRateLimitingQueue[T]) AddFailed(item T, err error) {
	q.AddAfter(item, whenError(q.limiter, item, err))
}

// Forget makes the limiter forget item's failures. It does not replace Done.
func (q *TypedRateLimitingQueue[T]) Forget(item T) {
	q.limiter.Forget(item)
}

// NumRequeues is the number of item's failures that the limiter remembers. A worker compares it
// with its maximum before it gives an item up.
func (q *TypedRateLimitingQueue[T]) NumRequeues(item T) int {
	return q.limiter.NumRequeues(item)
}

// Snapshot is that of the delaying queue, with what the limiter remembers.
func (q *TypedRateLimitingQueue[T]) Snapshot() Snapshot[T] {
	s := q.TypedDelayingQueue.Snapshot()
	q.limits(&s)
	return s
}

// limits adds what the limiter remembers.
func (q *TypedRateLimitingQueue[T]) limits(s *Snapshot[T]) {
	s.Limited = tracked(q.limiter)
	if q.limiter != nil {
		for i := range s.Waiting {
			s.Waiting[i].Failures = q.limiter.NumRequeues(s.Waiting[i].Item)
		}
	}
}

// TypedRateLimiter decides how long an item has to wait after a failure. Every method is safe for
// concurrent use and returns without blocking.
type TypedRateLimiter[T comparable] interface {
	// When counts a failure of item and returns how long it has to wait.
	When(item T) time.Duration
	// Forget resets the count: item succeeded, or was given up.
	Forget(item T)
	// NumRequeues is the number of item's failures since the last Forget.
	NumRequeues(item T) int
}

// ErrorRateLimiter is a limiter that decides by the error.
type ErrorRateLimiter[T comparable] interface {
	TypedRateLimiter[T]
	// WhenError counts a failure of item and returns how long it has to wait after err.
	WhenError(item T, err error) time.Duration
}

// Tracker is a limiter that remembers items.
type Tracker interface {
	// Tracked is the number of items that the limiter remembers.
	Tracked() int
}

func whenError[T comparable](limiter TypedRateLimiter[T], item T, err error) time.Duration {
	if l, ok := limiter.(ErrorRateLimiter[T]); ok {
		return l.WhenError(item, err)
	}
	return limiter.When(item)
}

func tracked[T comparable](limiter TypedRateLimiter[T]) int {
	if t, ok := limiter.(Tracker); ok {
		return t.Tracked()
	}
	return 0
}

// DefaultTypedControllerRateLimiter is the usual choice of a controller: 5 ms doubling to 1000 s
// for each item, and at most 10 retries a second (100 at once) for all items.
func DefaultTypedControllerRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedMaxOfRateLimiter(
		NewTypedItemExponentialFailureRateLimiter[T](5*time.Millisecond, 1000*time.Second),
		NewTypedBucketRateLimiter[T](10, 100),
	)
}

// DefaultTypedItemBasedRateLimiter is 1 ms doubling to 1000 s for each item.
func DefaultTypedItemBasedRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedItemExponentialFailureRateLimiter[T](time.Millisecond, 1000*time.Second)
}

// TypedBucketRateLimiter is one token bucket for all items: it limits the number of retries per
// second over all items.
type TypedBucketRateLimiter[T comparable] struct {
	*rate.Limiter
}

// NewTypedBucketRateLimiter returns a bucket that holds up to burst tokens, is full at first, and
// gains qps tokens a second.
//
// If qps is zero, negative or not a number, the bucket gains no tokens. If burst is not positive,
// the bucket stays empty. An item that needs a token that never exists waits for rate.InfDuration,
// some 292 years. An infinite qps limits nothing.
func NewTypedBucketRateLimiter[T comparable](qps float64, burst int) TypedRateLimiter[T] {
	limit := rate.Limit(qps)
	switch {
	case math.IsNaN(qps):
		limit = 0
	case math.IsInf(qps, 1):
		limit = rate.Inf
	}
	return &TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(limit, burst)}
}

// When takes a token and returns the time until that token exists. It does not wait. The token is
// never given back.
func (r *TypedBucketRateLimiter[T]) When(T) time.Duration {
	return r.Reserve().Delay()
}

// NumRequeues is 0: a bucket does not distinguish items.
func (r *TypedBucketRateLimiter[T]) NumRequeues(T) int { return 0 }

// Forget does nothing: a bucket does not distinguish items.
func (r *TypedBucketRateLimiter[T]) Forget(T) {}

// TypedMaxOfRateLimiter returns the longest delay of its limiters. All of them count each failure,
// so that a token bucket among them spends a token even if another limiter's delay is longer.
type TypedMaxOfRateLimiter[T comparable] struct {
	limiters []TypedRateLimiter[T]
}

// NewTypedMaxOfRateLimiter combines limiters. Without limiters there is no delay.
func NewTypedMaxOfRateLimiter[T comparable](limiters ...TypedRateLimiter[T]) TypedRateLimiter[T] {
	return &TypedMaxOfRateLimiter[T]{limiters: limiters}
}

// When counts a failure of item in every limiter and returns the longest delay.
func (r *TypedMaxOfRateLimiter[T]) When(item T) time.Duration {
	var longest time.Duration
	for _, limiter := range r.limiters {
		longest = max(longest, limiter.When(item))
	}
	return longest
}

// WhenError is When, and passes err to the limiters that decide by the error.
func (r *TypedMaxOfRateLimiter[T]) WhenError(item T, err error) time.Duration {
	var longest time.Duration
	for _, limiter := range r.limiters {
		longest = max(longest, whenError(limiter, item, err))
	}
	return longest
}

// Forget makes every limiter forget item.
func (r *TypedMaxOfRateLimiter[T]) Forget(item T) {
	for _, limiter := range r.limiters {
		limiter.Forget(item)
	}
}

// NumRequeues is the highest count among the limiters.
func (r *TypedMaxOfRateLimiter[T]) NumRequeues(item T) int {
	highest := 0
	for _, limiter := range r.limiters {
		highest = max(highest, limiter.NumRequeues(item))
	}
	return highest
}

// Tracked is the highest number of items that one of the limiters remembers.
func (r *TypedMaxOfRateLimiter[T]) Tracked() int {
	most := 0
	for _, limiter := range r.limiters {
		most = max(most, tracked(limiter))
	}
	return most
}

// TypedWithMaxWaitRateLimiter returns the delays of another limiter, up to a maximum.
type TypedWithMaxWaitRateLimiter[T comparable] struct {
	limiter  TypedRateLimiter[T]
	maxDelay time.Duration
}

// NewTypedWithMaxWaitRateLimiter caps the delays of limiter at maxDelay.
func NewTypedWithMaxWaitRateLimiter[T comparable](
	limiter TypedRateLimiter[T], maxDelay time.Duration,
) TypedRateLimiter[T] {
	return &TypedWithMaxWaitRateLimiter[T]{limiter: limiter, maxDelay: maxDelay}
}

// When is the limiter's delay, or the maximum if that is shorter.
func (w TypedWithMaxWaitRateLimiter[T]) When(item T) time.Duration {
	return min(w.limiter.When(item), w.maxDelay)
}

// WhenError is When, and passes err to a limiter that decides by the error.
func (w TypedWithMaxWaitRateLimiter[T]) WhenError(item T, err error) time.Duration {
	return min(whenError(w.limiter, item, err), w.maxDelay)
}

// Forget makes the limiter forget item.
func (w TypedWithMaxWaitRateLimiter[T]) Forget(item T) {
	w.limiter.Forget(item)
}

// NumRequeues is the limiter's count.
func (w TypedWithMaxWaitRateLimiter[T]) NumRequeues(item T) int {
	return w.limiter.NumRequeues(item)
}

// Tracked is the number of items that the limiter remembers.
func (w TypedWithMaxWaitRateLimiter[T]) Tracked() int {
	return tracked(w.limiter)
}

// TypedItemExponentialFailureRateLimiter doubles an item's delay with each failure: baseDelay,
// 2*baseDelay, 4*baseDelay and so on up to maxDelay, without jitter.
//
// Call Forget for items that succeed. The limiter drops an item that is not forgotten 12 to 24
// hours after its last failure (2 to 4 times maxDelay if that is longer), or sooner when half a
// million other items have failed since.
type TypedItemExponentialFailureRateLimiter[T comparable] struct {
	failures[T]
	baseDelay time.Duration
	maxDelay  time.Duration
}

// NewTypedItemExponentialFailureRateLimiter returns a limiter that starts at baseDelay and doubles
// the delay up to maxDelay.
func NewTypedItemExponentialFailureRateLimiter[T comparable](
	baseDelay, maxDelay time.Duration,
) TypedRateLimiter[T] {
	r := &TypedItemExponentialFailureRateLimiter[T]{baseDelay: baseDelay, maxDelay: maxDelay}
	r.init(maxDelay)
	return r
}

// When counts a failure of item. It returns maxDelay once doubling would exceed that, however often
// item fails.
func (r *TypedItemExponentialFailureRateLimiter[T]) When(item T) time.Duration {
	return double(r.baseDelay, r.fail(item).count, r.maxDelay)
}

// double is base doubled n times, or longest if that is less. It does not overflow. A base that is
// not positive is not doubled.
func double(base time.Duration, n int, longest time.Duration) time.Duration {
	switch {
	case base <= 0:
		return min(base, longest)
	case base > longest>>n:
		return longest
	}
	return base << n
}

// TypedItemFastSlowRateLimiter returns fastDelay for an item's first failures and slowDelay after
// them.
//
// It drops items that are not forgotten as TypedItemExponentialFailureRateLimiter does, with the
// longer delay as maxDelay.
type TypedItemFastSlowRateLimiter[T comparable] struct {
	failures[T]
	maxFastAttempts int
	fastDelay       time.Duration
	slowDelay       time.Duration
}

// NewTypedItemFastSlowRateLimiter returns a limiter that returns fastDelay maxFastAttempts times,
// then slowDelay.
func NewTypedItemFastSlowRateLimiter[T comparable](
	fastDelay, slowDelay time.Duration, maxFastAttempts int,
) TypedRateLimiter[T] {
	r := &TypedItemFastSlowRateLimiter[T]{
		maxFastAttempts: maxFastAttempts, fastDelay: fastDelay, slowDelay: slowDelay}
	r.init(max(fastDelay, slowDelay))
	return r
}

// When counts a failure of item.
func (r *TypedItemFastSlowRateLimiter[T]) When(item T) time.Duration {
	if r.fail(item).count < r.maxFastAttempts {
		return r.fastDelay
	}
	return r.slowDelay
}

const (
	// minRemembered is longer than the time between two failures of an item in a controller that
	// reconciles everything every ten hours, as many do.
	minRemembered = 12 * time.Hour
	// maxRemembered is the number of items that a limiter remembers at most.
	maxRemembered = 1 << 20
)

// failures maps items to their recent failures, and drops items that failed long ago. So items that
// are never forgotten, such as deleted ones, do not stay for ever.
//
// It has two generations. A failure moves the item to the young one. When the young generation has
// become old or large, it replaces the old one and its items.
//
//	R1  an item that failed within the last keep is in a generation, unless maxLen/2 other items
//	    have failed since
//	R2  an item that failed last 2*keep before another item is in no generation
//	R3  the generations contain at most maxLen items
//	R4  no item is in both generations
//
// Limiters embed it for its methods.
type failures[T comparable] struct {
	keep   time.Duration
	maxLen int

	mu         sync.Mutex
	young, old map[T]failure
	since      time.Time // no item in young failed before
}

// failure records the failures of an item.
type failure struct {
	count int
	next  time.Duration // of a TypedErrorTypeRateLimiter: the delay that Failed chose, or unset
}

// init keeps an item for at least twice the longest delay: it must not be dropped while it waits.
func (f *failures[T]) init(longestDelay time.Duration) {
	f.keep = 2 * min(max(longestDelay, minRemembered/2), math.MaxInt64/2)
	f.maxLen = maxRemembered
}

// fail counts a failure of item and returns what was known before.
func (f *failures[T]) fail(item T) (before failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.getLocked(item)
	f.putLocked(item, failure{count: before.count + 1}, time.Now())
	return before
}

// Forget resets item's count.
func (f *failures[T]) Forget(item T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.young, item)
	delete(f.old, item)
}

// NumRequeues is the number of item's failures since it was last forgotten.
func (f *failures[T]) NumRequeues(item T) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.getLocked(item).count
}

// Tracked is the number of items that the limiter remembers.
func (f *failures[T]) Tracked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lenLocked()
}

func (f *failures[T]) getLocked(item T) failure {
	if known, ok := f.young[item]; ok {
		return known
	}
	return f.old[item]
}

// putLocked records the failures of item, which failed at now.
func (f *failures[T]) putLocked(item T, known failure, now time.Time) {
	if f.lenLocked() == 0 {
		f.since = now
	}
	f.ageLocked(now)
	if f.young == nil {
		f.young = map[T]failure{}
	}
	delete(f.old, item)
	f.young[item] = known
}

func (f *failures[T]) ageLocked(now time.Time) {
	age := now.Sub(f.since)
	switch {
	case age-f.keep >= f.keep: // both are too old
		f.old, f.young = nil, nil
		f.since = now
	case age >= f.keep:
		f.old, f.young = f.young, nil
		f.since = f.since.Add(f.keep)
	case len(f.young) >= f.maxLen/2:
		f.old, f.young = f.young, nil
		f.since = now
	}
}

func (f *failures[T]) lenLocked() int {
	return len(f.young) + len(f.old)
}
