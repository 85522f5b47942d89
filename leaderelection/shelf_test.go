// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/leaderelection/resourcelock"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// shelf is where the lease lies: an API server with one object. It checks law E1 at every write.
type shelf struct {
	t testing.TB

	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord // nil: no such object
	version int                                // of the object
	made    int                                // how often it was created
	written time.Time
	lawless bool // E1 is not checked
	// precision is what the server keeps of a RenewTime
	precision time.Duration
	narrate   *narrate.Log
	// what part of its duration earlier a candidate with a fast clock may take it
	early float64
	calls map[string]int // by operation, those that reached the server
}

func newShelf(t testing.TB) *shelf {
	return &shelf{t: t, precision: time.Microsecond, calls: map[string]int{}}
}

func (s *shelf) put(record *resourcelock.LeaderElectionRecord) {
	switch {
	case record == nil:
		s.narrate.Event("server", "the lease is deleted")
	case record.HolderIdentity == "":
		s.narrate.Event("server", "the lease is released")
	case s.record != nil && s.record.HolderIdentity == record.HolderIdentity:
		s.narrate.Event("server", "the lease is renewed by %s", record.HolderIdentity)
	default:
		s.narrate.Event("server", "the lease is taken by %s", record.HolderIdentity)
	}
	if record != nil {
		record.RenewTime.Time = record.RenewTime.Truncate(s.precision)
	}
	s.record, s.written = record, time.Now()
	s.version++
}

// set writes the record as a client outside of the election; nil deletes it.
func (s *shelf) set(record *resourcelock.LeaderElectionRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil && record != nil {
		s.made++
	}
	s.put(record)
}

func (s *shelf) get() resourcelock.LeaderElectionRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record == nil {
		return resourcelock.LeaderElectionRecord{HolderIdentity: "(no lease)"}
	}
	return *s.record
}

func (s *shelf) count(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

// checkWriteLocked is law E1, by the server's clock.
func (s *shelf) checkWriteLocked(by string) {
	old := s.record
	if s.lawless || old == nil || old.HolderIdentity == by || old.HolderIdentity == "" {
		return
	}
	wait := time.Duration((1 - s.early) * float64(old.LeaseDurationSeconds) * float64(time.Second))
	assert.GreaterOrEqual(s.t, time.Since(s.written), wait, "E1: %s overwrites the lease of %s", by,
		old.HolderIdentity)
}

// weather is what becomes of a candidate's requests.
type weather struct {
	op    string // which requests; "" means all
	kind  string // ok, or as in parseWeather
	code  int    // not 0: that of the error that comes instead of an answer
	delay time.Duration
}

// parseWeather reads ok, fails (requests do not arrive), hangs (they are answered never), loses
// (they arrive, the answer is lost), there=5s or back=5s (each way takes so long). fails=403 and
// loses=500 name the error. With update: in front, it is the weather of one operation alone.
func parseWeather(t testing.TB, s string) (w weather) {
	if op, rest, ok := strings.Cut(s, ":"); ok {
		w.op, s = op, rest
	}
	kind, value, _ := strings.Cut(s, "=")
	var err error
	switch {
	case !slices.Contains([]string{"ok", "fails", "hangs", "loses", "there", "back"}, kind):
		t.Fatalf("unknown weather %q", s)
	case kind == "there" || kind == "back":
		w.delay, err = time.ParseDuration(value)
	case value != "":
		w.code, err = strconv.Atoi(value)
	}
	require.NoError(t, err, s)
	w.kind = kind
	return w
}

// shelfLock is one candidate's way to the shelf.
type shelfLock struct {
	shelf    *shelf
	identity string
	events   func(string)
	link     func() time.Duration // of a slow link, each way
	before   func(op string)      // called before each request
	after    func(op string)      // called after each request that has reached the server
	// reads changes the records that were read, and writes those to write
	reads, writes func(*resourcelock.LeaderElectionRecord)

	mu      sync.Mutex
	weather weather
	version int // that was last read or written
	uid     types.UID
}

func (l *shelfLock) setWeather(w weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weather = w
}

// do sends a request that does work on the server. Its answer has the version of the lease.
func (l *shelfLock) do(ctx context.Context, op string, work func(s *shelf) error) error {
	if l.before != nil {
		l.before(op)
	}
	l.mu.Lock()
	w := l.weather
	l.mu.Unlock()
	if w.op != "" && w.op != op {
		w = weather{}
	}
	var there, back time.Duration
	if l.link != nil {
		there, back = l.link(), l.link()
	}
	switch w.kind {
	case "hangs":
		<-ctx.Done()
	case "fails":
		return apierrors.NewGenericServerResponse(
			cmp.Or(w.code, http.StatusInternalServerError), op, leases, "lease", "failed", 0, true)
	case "there":
		there += w.delay
	case "back":
		back += w.delay
	}
	if !done.Sleep(ctx, there) {
		return ctx.Err()
	}
	l.shelf.mu.Lock()
	l.shelf.calls[op]++
	err := work(l.shelf)
	version, made := l.shelf.version, l.shelf.made
	l.shelf.mu.Unlock()
	if l.after != nil {
		l.after(op)
	}
	switch {
	case w.kind == "loses" && w.code != 0:
		return apierrors.NewGenericServerResponse(w.code, op, leases, "lease", "lost", 0, true)
	case w.kind == "loses":
		return fmt.Errorf("%s: connection reset", op)
	case back > 0 && !done.Sleep(ctx, back):
		return ctx.Err()
	}
	if err == nil {
		l.know(version, made)
	}
	return err
}

func (l *shelfLock) Get(
	ctx context.Context,
) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = l.do(ctx, "get", func(s *shelf) error {
		if s.record == nil {
			return apierrors.NewNotFound(leases, "lease")
		}
		copied := *s.record
		record = &copied
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if l.reads != nil {
		l.reads(record)
	}
	raw, err = json.Marshal(resourcelock.LeaderElectionRecordToLeaseSpec(record))
	return record, raw, err
}

func (l *shelfLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.do(ctx, "create", func(s *shelf) error {
		if s.record != nil {
			return apierrors.NewAlreadyExists(leases, "lease")
		}
		s.made++
		l.putLocked(record)
		return nil
	})
}

func (l *shelfLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	known := l.version
	l.mu.Unlock()
	return l.do(ctx, "update", func(s *shelf) error {
		switch {
		case s.record == nil:
			return apierrors.NewNotFound(leases, "lease")
		case s.version != known:
			return apierrors.NewConflict(leases, "lease",
				fmt.Errorf("version %d, not %d", s.version, known))
		}
		s.checkWriteLocked(l.identity)
		l.putLocked(record)
		return nil
	})
}

func (l *shelfLock) putLocked(record resourcelock.LeaderElectionRecord) {
	if l.writes != nil {
		l.writes(&record)
	}
	l.shelf.put(&record)
}

func (l *shelfLock) know(version, made int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version, l.uid = version, types.UID(fmt.Sprintf("uid%d", made))
}

func (l *shelfLock) RecordEvent(event string) {
	if l.events != nil {
		l.events(event)
	}
}
func (l *shelfLock) Identity() string { return l.identity }
func (l *shelfLock) Describe() string { return "ns/lease" }
func (l *shelfLock) UID() types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uid
}
