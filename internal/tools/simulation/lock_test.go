// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"example.com/informerstack/leaderelection/resourcelock"
)

// The locks of a candidate. A migration goes from the first over the second to the third.
const (
	onEndpoints = resourcelock.EndpointsResourceLock
	onBoth      = resourcelock.EndpointsLeasesResourceLock // a MultiLock
	onLeases    = resourcelock.LeasesResourceLock
	coordinated = "coordinated" // leases, which a coordinator assigns
)

// halves are the objects of each lock.
var halves = map[string][]string{
	onEndpoints: {onEndpoints}, onBoth: {onEndpoints, onLeases}, onLeases: {onLeases},
	coordinated: {onLeases},
}

// migrates is the next lock of a migration.
var migrates = map[string]string{onEndpoints: onBoth, onBoth: onLeases}

func newLock(config *rest.Config, kind, identity string) resourcelock.Interface {
	if kind == coordinated {
		kind = onLeases
	}
	lock, err := resourcelock.NewFromKubeconfig(kind, "kube-system", "lock",
		resourcelock.ResourceLockConfig{Identity: identity}, config, renewDeadline)
	if err != nil {
		panic(err)
	}
	return lock
}

// newLease returns the lease of all locks, without its content.
func newLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"},
	}
}

// lockState is a version of one object of a lock. It has no uid if the object was deleted.
type lockState struct {
	half   string
	rv     uint64
	uid    types.UID
	by     *candidate // nil: the script
	at     time.Time  // of the write; of a change of the record in world.locks
	record resourcelock.LeaderElectionRecord
}

// locks are the objects of a contest's lock.
type locks struct {
	written   []lockState // since the last check; guarded by world.mu
	now       map[string]lockState
	deletions map[string][]time.Time
	ledgers   map[types.UID]*ledger
}

func newLocks() locks {
	return locks{
		now: map[string]lockState{}, deletions: map[string][]time.Time{},
		ledgers: map[types.UID]*ledger{},
	}
}

// readLock reads a Lease, or an Endpoints with the record as an annotation, from its JSON.
func readLock(half string, data []byte) lockState {
	var obj struct {
		Metadata metav1.ObjectMeta
		Spec     coordinationv1.LeaseSpec
	}
	if err := json.Unmarshal(data, &obj); err != nil {
		panic(err)
	}
	s := lockState{
		half: half, rv: number(obj.Metadata.ResourceVersion), uid: obj.Metadata.UID,
		at: time.Now(), record: *resourcelock.LeaseSpecToLeaderElectionRecord(&obj.Spec),
	}
	text := obj.Metadata.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]
	if text != "" && json.Unmarshal([]byte(text), &s.record) != nil {
		panic("bad record " + text)
	}
	return s
}

func (w *world) wroteLock(s lockState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, s)
}

// deleteLock deletes an object of the lock.
func (w *world) deleteLock(half string) {
	obj := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
		Kind: "Lease", APIVersion: "coordination.k8s.io/v1",
	}, ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"}}
	if half == onEndpoints {
		obj.TypeMeta = metav1.TypeMeta{Kind: "Endpoints", APIVersion: "v1"}
	}
	if w.server.Delete(obj) == nil {
		w.cover("lock deleted")
		w.wroteLock(lockState{half: half, rv: number(w.server.ResourceVersion())})
		w.deletions[half] = append(w.deletions[half], time.Now())
	}
}

// deletedBetween reports whether every object that two locks have in common was deleted: a
// candidate does not see then that there is a leader.
func (w *world) deletedBetween(a, b string, from, to time.Time) bool {
	for _, half := range halves[a] {
		deleted := slices.ContainsFunc(w.deletions[half], func(at time.Time) bool {
			return !at.Before(from) && !at.After(to)
		})
		if slices.Contains(halves[b], half) && !deleted {
			return false
		}
	}
	return true
}

// holder returns the holder of a lock, as the server knows it.
func (w *world) holder(kind string) (holder string) {
	for _, half := range halves[kind] {
		name := w.now[half].record.HolderIdentity
		if holder != "" && name != "" && name != holder {
			return resourcelock.UnknownLeader
		}
		holder = cmp.Or(holder, name)
	}
	return holder
}

// checkLocks checks what was written to the objects of the lock since the last call.
func (w *world) checkLocks() {
	if w.impl != ours { // no tap sees the writes
		lease := newLease()
		if w.server.Get(lease) == nil {
			w.now[onLeases] = lockState{
				record: *resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec),
			}
		}
		return
	}
	w.mu.Lock()
	written := w.written
	w.written = nil
	w.mu.Unlock()
	slices.SortFunc(written, func(a, b lockState) int { return cmp.Compare(a.rv, b.rv) })
	for _, s := range written {
		old := w.now[s.half]
		if s.uid == old.uid && s.by != nil {
			s.checkReplaces(old)
		}
		if s.uid == old.uid && s.record == old.record {
			s.at = old.at
		}
		w.now[s.half] = s
	}
}

// checkReplaces checks that a candidate takes a record that has expired, renews or releases its
// own, and counts the transitions.
func (s lockState) checkReplaces(old lockState) {
	c, before, now := s.by, old.record, s.record
	age, lasts := s.at.Sub(old.at), time.Duration(before.LeaseDurationSeconds)*time.Second
	taken := now.HolderIdentity != "" && before.HolderIdentity != c.identity
	transitions := before.LeaderTransitions
	freed := before.HolderIdentity == c.identity || before.HolderIdentity == "" && c.lock == onBoth
	switch {
	case now.HolderIdentity == "" && !freed:
		c.violate(6, "%s releases the %s of %q", c.name, s.half, before.HolderIdentity)
	case now.HolderIdentity != "" && now.HolderIdentity != c.identity:
		c.violate(6, "%s gives the %s to %s", c.name, s.half, now.HolderIdentity)
	case taken && c.lock == coordinated:
		c.violate(6, "%s takes a lease that it was not given", c.name)
	case taken && before.HolderIdentity != "" && age < lasts:
		c.violate(6, "%s takes the %s of %s after %v, it lasts %v", c.name, s.half,
			before.HolderIdentity, age, lasts)
	}
	if taken {
		c.cover("lock taken")
		transitions++
	}
	// A MultiLock counts as many as the object that counts more.
	if now.LeaderTransitions < transitions ||
		now.LeaderTransitions > transitions && c.lock != onBoth {
		c.violate(6, "%s counts %d transitions in the %s, want %d", c.name, now.LeaderTransitions,
			s.half, transitions)
	}
}

// trap is what happens at the next write of a candidate.
type trap string

// In all but the first, the write is done.
var traps = []trap{
	"dies before", "dies after", // the program
	"stops",        // the program, and the answer is lost
	"e500", "e504", // is the answer
	"e504 later", // the client tries again by itself
	"e500 stops", // the program, before it tries again
}

// tap sees what a candidate writes, below its gate. A write that was sent is done, even if its
// answer is not awaited any more.
type tap struct {
	c    *candidate
	next http.RoundTripper
}

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return t.next.RoundTrip(r)
	}
	sprung := t.c.spring(r.URL.Path)
	if sprung == "dies before" {
		t.c.exit()
		return nil, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	}
	type result struct {
		answer *http.Response
		err    error
	}
	done := make(chan result, 1)
	sent := r.WithContext(context.WithoutCancel(r.Context()))
	//lint:ignore SA1019 http.Client sets it for its timeout
	sent.Cancel = nil
	go func() {
		answer, err := t.write(sent)
		done <- result{answer, err}
	}()
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case got := <-done:
		if got.err != nil || sprung == "" {
			return got.answer, got.err
		}
		return t.c.answer(sprung, r)
	}
}

// write returns an answer that has arrived completely.
func (t *tap) write(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(data))
	half := onLeases
	switch {
	case len(data) == 0, answer.StatusCode >= http.StatusBadRequest,
		strings.Contains(r.URL.Path, "/leasecand"): // an empty one is of a write without effect
		return answer, nil
	case strings.Contains(r.URL.Path, "/endpoints"):
		half = onEndpoints
	}
	s := readLock(half, data)
	s.by = t.c
	t.c.wroteLock(s)
	return answer, nil
}

// spring returns the trap of a write, if there is one.
func (c *candidate) spring(path string) trap {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !strings.Contains(path, c.trapped) {
		return ""
	}
	sprung := c.trap
	if c.trap = ""; sprung != "" {
		c.note("%s: trap %s at %s", c.name, sprung, path)
		c.cover("trap " + string(sprung))
	}
	return sprung
}

// answer is what a candidate gets for a write that is done.
func (c *candidate) answer(sprung trap, r *http.Request) (*http.Response, error) {
	status := apierrors.NewInternalError(errFault).Status()
	switch sprung {
	case "dies after":
		c.exit()
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case "stops":
		c.stop()
		return nil, errLost
	case "e500 stops":
		time.AfterFunc(time.Second, c.stop)
	case "e504", "e504 later":
		status = apierrors.NewTimeoutError("slow", 0).Status()
	}
	answer := statusAnswer(r, status)
	if sprung == "e504 later" {
		answer.Header.Set("Retry-After", "1")
	}
	return answer, nil
}
