// SPDX-License-Identifier: Apache-2.0

package sizes

import (
	"sync"
	"time"

	"example.com/informerstack/store"
)

const (
	// meterPeriod is the least time between two measurements. They may also take one part in
	// meterPart of the time.
	meterPeriod = time.Minute
	meterPart   = 200
)

// Meter measures the Sizes of one store in the background, at most once a minute, for pages
// and scrapers that ask more often. The zero value has measured nothing.
type Meter struct {
	mu    sync.Mutex
	next  time.Time
	done  chan struct{} // of the measurement in progress, or nil
	sizes Sizes
}

// Measure begins to measure the objects if it is time for it, and does not wait. The result closes
// at the end of the measurement in progress; it is nil between two. A store that hangs keeps a
// goroutine. If a store panics, its sizes are those of no objects.
func (m *Meter) Measure(objects store.Store) (done <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done == nil && !time.Now().Before(m.next) {
		m.done = make(chan struct{})
		go m.run(objects)
	}
	return m.done
}

func (m *Meter) run(objects store.Store) {
	begin := time.Now()
	var sizes Sizes
	defer func() {
		_ = recover() // of the store: observation must not end the program
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sizes = sizes
		m.next = begin.Add(max(meterPeriod, meterPart*time.Since(begin)))
		close(m.done)
		m.done = nil
	}()
	sizes = Measure(objects)
}

// Last returns the sizes of the last measurement, for as many objects as there are now.
func (m *Meter) Last(objects int) Sizes {
	m.mu.Lock()
	s := m.sizes
	m.mu.Unlock()
	if s.Objects == 0 {
		return Sizes{}
	}
	now := float64(objects) / float64(s.Objects)
	fields := make([]Field, 0, len(s.Fields))
	for _, field := range s.Fields {
		field.Bytes = int64(float64(field.Bytes) * now)
		fields = append(fields, field)
	}
	s.Objects, s.Bytes, s.Fields = objects, int64(float64(s.Bytes)*now), fields
	return s
}
