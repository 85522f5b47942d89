// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/informer"
)

const (
	sampleEvery = 50 * time.Millisecond
	// slack bounds the delay that a busy machine adds between a change on the server and a sample.
	slack = 2 * time.Second
	// A store that lags by less than current is current. One that has been for settle must be
	// fresh.
	current = 2 * time.Second
	settle  = 5 * time.Second
	// A store has recovered when it lags by less than recoveredLag.
	recoveredLag = time.Second
)

// bounds are the ages that Health is asked about: shorter than most faults, and longer.
var bounds = []time.Duration{15 * time.Second, 75 * time.Second}

// monitor compares, every sampleEvery, the Health of each informer with what its store holds.
//
//	M1  fresh within d  =>  the store holds everything that the server held d ago
//	M2  the store has been current for settle  =>  fresh, within each of bounds
//
// While the server does not answer, its state is unknown, and every store counts as old. A law is
// broken if it does not hold for longer than the tolerance: when the server answers again, a store
// may be current before the timeline shows it.
type monitor struct {
	lasting  int // samples of the tolerance
	subjects []*subject

	mu       sync.Mutex
	fault    fault
	answered time.Time // when the server answered again; zero during a fault
	watched  []watched // one for each subject
}

// watched is the state of one subject.
type watched struct {
	currentSince time.Time
	recovered    time.Time // from the present fault; zero before
	breaches     map[string]*breach
}

// breach counts the samples of one subject that break one law during one fault.
type breach struct {
	run   int // the last samples in a row
	count int // samples after the first of each run
	worst time.Duration
	first string
}

// startMonitor samples until the test ends, and then fails the test if a law was broken.
func startMonitor(t *testing.T, tolerance time.Duration, subjects []*subject) *monitor {
	m := &monitor{
		lasting:  int(tolerance / sampleEvery),
		subjects: subjects,
		watched:  make([]watched, len(subjects)),
	}
	for i := range m.watched {
		m.watched[i] = watched{currentSince: time.Now(), breaches: map[string]*breach{}}
	}
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			select {
			case <-t.Context().Done(): // before Cleanup functions run
				return
			case <-ticker.C:
				m.sample(t)
			}
		}
	})
	t.Cleanup(func() {
		running.Wait()
		m.report(t)
	})
	return m
}

func (m *monitor) sample(t *testing.T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, s := range m.subjects {
		w := &m.watched[i]
		now := time.Now()
		// asked before the store is read, which only becomes newer
		stale := make([]error, len(bounds))
		if s.ours != nil {
			for j, d := range bounds {
				stale[j] = informer.AllFresh(d, s.ours)
			}
		}
		n, exists, err := s.beat()
		if !assert.NoError(t, err) {
			continue
		}
		lag := s.writer.timeline.lag(n, now)
		if lag >= current || !exists {
			w.currentSince = now
		}
		if !exists { // the server may not have it either: nothing is known
			continue
		}
		if m.hasRecovered(s, n, lag) && w.recovered.IsZero() {
			w.recovered = now
		}
		if s.ours == nil || m.fault.blind {
			continue
		}
		for j, d := range bounds {
			fresh, since := stale[j] == nil, now.Sub(w.currentSince)
			m.law(i, fmt.Sprintf("M1, fresh within %v while old", d), fresh && lag > d+slack, lag)
			m.law(i, fmt.Sprintf("M2, stale within %v while current", d), !fresh && since > settle,
				since)
		}
	}
}

func (m *monitor) hasRecovered(s *subject, n int, lag time.Duration) bool {
	return !m.answered.IsZero() && lag < recoveredLag &&
		s.writer.timeline.isAfter(n, m.answered)
}

// law records whether subject i breaks a law in this sample, and by how much.
func (m *monitor) law(i int, law string, broken bool, size time.Duration) {
	law = m.fault.name + ": " + law
	b := m.watched[i].breaches[law]
	if b == nil {
		b = &breach{}
		m.watched[i].breaches[law] = b
	}
	if !broken {
		b.run = 0
		return
	}
	if b.run++; b.run <= m.lasting {
		return
	}
	if b.count++; b.count == 1 {
		b.first = fmt.Sprintf("%v when found; %+v", size.Round(time.Millisecond),
			m.subjects[i].ours.Health())
	}
	b.worst = max(b.worst, size)
}

// begin starts a fault.
func (m *monitor) begin(f fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault, m.answered = f, time.Time{}
	for i := range m.watched {
		m.watched[i].recovered = time.Time{}
	}
}

// end records that the server has answered again since at.
func (m *monitor) end(at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answered = at
}

// recoveries waits until all informers have recovered, and returns how long those of each
// implementation took. It returns false if ctx ends first.
func (m *monitor) recoveries(ctx context.Context) (map[string][]time.Duration, bool) {
	for {
		took, complete := m.recovered()
		if complete || !wait(ctx, sampleEvery) {
			return took, complete
		}
	}
}

// recovered returns what recoveries returns. A server that starts answers reads seconds before it
// accepts writes. Until then there is nothing new to receive, so the time does not count.
func (m *monitor) recovered() (took map[string][]time.Duration, complete bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	took = map[string][]time.Duration{}
	for i, s := range m.subjects {
		if m.watched[i].recovered.IsZero() {
			return nil, false
		}
		accepted := s.writer.timeline.accepted(m.answered).Add(-s.writer.every)
		if accepted.Before(m.answered) {
			accepted = m.answered
		}
		took[s.implementation] = append(took[s.implementation],
			max(0, m.watched[i].recovered.Sub(accepted)))
	}
	return took, true
}

// report fails the test for each broken law.
func (m *monitor) report(t *testing.T) {
	for i, s := range m.subjects {
		for law, b := range m.watched[i].breaches {
			if b.count > 0 {
				lasted := time.Duration(b.count+m.lasting) * sampleEvery
				t.Errorf("%s: %s, for %v, by up to %v; %s", s.name, law, lasted,
					b.worst.Round(100*time.Millisecond), b.first)
			}
		}
	}
}
