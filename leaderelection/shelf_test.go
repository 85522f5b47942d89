// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"encoding/json"
	"fmt"
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
	assert.GreaterOrEqual(
		s.t,
		time.Since(s.written),
		wait,
		"E1: %s overwrites the lease of %s",
		by,
		old.HolderIdentity,
	)
}

// weather is what becomes of a candidate's requests.
type weather struct {
	op    string // which requests; "" means all
	fails bool   // they do not arrive
	hangs bool   // they are answered never
	loses bool   // they arrive, the answer is lost
	code  int    // not 0: that of the error that comes instead of a lost answer
	there time.Duration
	back  time.Duration
}

// parseWeather reads ok, fails, hangs, loses, loses=500, there=5s or back=5s, for one operation
// alone with update: in front.
func parseWeather(t testing.TB, s string) (w weather) {
	if op, rest, ok := strings.Cut(s, ":"); ok {
		w.op, s = op, rest
	}
	name, value, _ := strings.Cut(s, "=")
	delay, err := time.ParseDuration(value)
	if name == "loses" && value != "" {
		w.code, err = strconv.Atoi(value)
	}
	require.True(t, value == "" || err == nil, s)
	switch name {
	case "ok":
	case "fails":
		w.fails = true
	case "hangs":
		w.hangs = true
	case "loses":
		w.loses = true
	case "there":
		w.there = delay
	case "back":
		w.back = delay
	default:
		t.Fatalf("unknown weather %q", s)
	}
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

// do sends a request that does work on the server.
func (l *shelfLock) do(ctx context.Context, op string, work func() error) error {
	if l.before != nil {
		l.before(op)
	}
	l.mu.Lock()
	w := l.weather
	l.mu.Unlock()
	if w.op != "" && w.op != op {
		w = weather{}
	}
	if l.link != nil {
		w.there, w.back = w.there+l.link(), w.back+l.link()
	}
	if w.hangs {
		<-ctx.Done()
	}
	if w.fails {
		return apierrors.NewInternalError(fmt.Errorf("%s failed", op))
	}
	if ctx.Err() != nil || w.there > 0 && !done.Sleep(ctx, w.there) {
		return ctx.Err()
	}
	l.shelf.mu.Lock()
	l.shelf.calls[op]++
	err := work()
	l.shelf.mu.Unlock()
	if l.after != nil {
		l.after(op)
	}
	switch {
	case w.code != 0:
		return apierrors.NewGenericServerResponse(w.code, op, leases, "lease", "lost", 0, true)
	case w.loses:
		return fmt.Errorf("%s: connection reset", op)
	}
	if w.back > 0 && !done.Sleep(ctx, w.back) {
		return ctx.Err()
	}
	return err
}

func (l *shelfLock) Get(
	ctx context.Context,
) (record *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	version, made := 0, 0
	err = l.do(ctx, "get", func() error {
		if l.shelf.record == nil {
			return apierrors.NewNotFound(leases, "lease")
		}
		copied := *l.shelf.record
		record, version, made = &copied, l.shelf.version, l.shelf.made
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	l.know(version, made)
	raw, err = json.Marshal(resourcelock.LeaderElectionRecordToLeaseSpec(record))
	return record, raw, err
}

func (l *shelfLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	version, made := 0, 0
	err := l.do(ctx, "create", func() error {
		if l.shelf.record != nil {
			return apierrors.NewAlreadyExists(leases, "lease")
		}
		l.shelf.made++
		l.shelf.put(&record)
		version, made = l.shelf.version, l.shelf.made
		return nil
	})
	if err == nil {
		l.know(version, made)
	}
	return err
}

func (l *shelfLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	known := l.version
	l.mu.Unlock()
	version, made := 0, 0
	err := l.do(ctx, "update", func() error {
		switch {
		case l.shelf.record == nil:
			return apierrors.NewNotFound(leases, "lease")
		case l.shelf.version != known:
			return apierrors.NewConflict(
				leases,
				"lease",
				fmt.Errorf("version %d, not %d", l.shelf.version, known),
			)
		}
		l.shelf.checkWriteLocked(l.identity)
		l.shelf.put(&record)
		version, made = l.shelf.version, l.shelf.made
		return nil
	})
	if err == nil {
		l.know(version, made)
	}
	return err
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
