// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"sync"
	"time"

	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

const (
	// sizesPeriod is the least time between two measurements of one store. They may also take one
	// part in sizesPart of the time.
	sizesPeriod = time.Minute
	sizesPart   = 200
	// sizesWait is how long a page waits for measurements of stores. The next one has the rest.
	sizesWait = 100 * time.Millisecond
	// maxLargest is the number of fields that the page shows.
	maxLargest = 5
)

// measured are the sizes of the objects of a store, which are measured while a page is asked for.
// The page does not wait for a store that hangs.
type measured struct {
	mu    sync.Mutex
	next  time.Time
	done  chan struct{} // of the measurement in progress, or nil
	sizes informer.Sizes
}

// start measures in the background if it is time for it. It returns a channel that closes at the
// end of the measurement in progress, or nil.
func (m *measured) start(objects store.Store) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done == nil && !time.Now().Before(m.next) {
		m.done = make(chan struct{})
		go m.measure(objects)
	}
	return m.done
}

func (m *measured) measure(objects store.Store) {
	begin := time.Now()
	var sizes informer.Sizes
	defer func() {
		_ = recover() // of the store: a page must not end the program
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sizes = sizes
		m.next = begin.Add(max(sizesPeriod, sizesPart*time.Since(begin)))
		close(m.done)
		m.done = nil
	}()
	sizes = informer.SizesOf(objects)
}

func (m *measured) last() informer.Sizes {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sizes
}

// measure adds the sizes of the objects to informers, as far as they are known in time.
func measure(informers []Informer) {
	timeout := time.NewTimer(sizesWait)
	defer timeout.Stop()
	for n := range informers {
		i := &informers[n]
		if i.store == nil || i.measured == nil {
			continue
		}
		if done := i.measured.start(i.store); done != nil {
			select {
			case <-done:
			case <-timeout.C:
				timeout.Reset(0) // the others are not waited for either
			}
		}
		i.setSizes(i.measured.last())
	}
}

// setSizes takes over sizes that may have been measured a while ago, for as many objects as there
// are now.
func (i *Informer) setSizes(s informer.Sizes) {
	if s.Objects == 0 {
		return
	}
	now := float64(i.Objects) / float64(s.Objects)
	s.Objects, s.Bytes = i.Objects, int64(float64(s.Bytes)*now)
	fields := make([]informer.FieldSize, 0, len(s.Fields))
	for _, field := range s.Fields {
		field.Bytes = int64(float64(field.Bytes) * now)
		fields = append(fields, field)
	}
	s.Fields = fields
	i.sizes = s
	i.Bytes, i.Largest = s.Bytes, fields[:min(maxLargest, len(fields))]
}

func bytesText(n int64) string {
	if n < 1_000_000 {
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
