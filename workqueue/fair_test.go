// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

var (
	_ workqueue.ContextInterface[string] = (*workqueue.Fair[string])(nil)
	_ workqueue.Partial[string]          = (*workqueue.Fair[string])(nil)
)

// groupOf is the namespace of a key.
func groupOf(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// Without groups and priorities, a Fair does what the posts' queue does: TestModel's operations on
// one below a rate limiting queue.
func TestFair_WithoutGroupsIsFIFO(t *testing.T) {
	workqueue.SmallLimits(t)
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			q := ours(workqueue.Config[string]{Queue: workqueue.NewFair(
				workqueue.FairConfig[string]{}, workqueue.Config[string]{})})
			defer q.ShutDown()
			random, m := rand.New(rand.NewPCG(seed, 0)), newModel()
			for range 500 {
				bits := random.Uint32()
				m.step(t, q, byte(bits), byte(bits>>8), uint16(bits>>16))
			}
		})
	}
}

// fairModel is a Fair as its documentation says it, in slices that are searched from the front.
type fairModel struct {
	weights, limits map[string]int
	patience        int
	levels          []*modelLevel // that which has waited longest first
	working         map[string]int
	processing      map[string]bool
	again           map[string]int // priority
	ofGroup         map[string][]*modelPart
	pops            int
}

type modelLevel struct {
	priority int
	parts    []*modelPart // in the order of their turns
	since    int
}

type modelPart struct {
	level *modelLevel
	group string
	items []string
	left  int
	held  bool
}

func (m *fairModel) full(group string) bool {
	return m.limits[group] > 0 && m.working[group] >= m.limits[group]
}

// find returns the level and the part of an item, and its place in it.
func (m *fairModel) find(key string) (l *modelLevel, p *modelPart, at int) {
	for _, l := range m.levels {
		for _, p := range l.parts {
			if at := slices.Index(p.items, key); at >= 0 {
				return l, p, at
			}
		}
	}
	return nil, nil, -1
}

func (m *fairModel) add(key string, priority int) {
	if m.processing[key] {
		if old, ok := m.again[key]; !ok || priority > old {
			m.again[key] = priority
		}
		return
	}
	if l, p, at := m.find(key); l != nil {
		if priority <= l.priority {
			return
		}
		p.items = slices.Delete(p.items, at, at+1)
		m.tidy()
	}
	m.push(key, priority)
}

func (m *fairModel) push(key string, priority int) {
	group := groupOf(key)
	i := slices.IndexFunc(m.levels, func(l *modelLevel) bool { return l.priority == priority })
	if i < 0 {
		i = len(m.levels)
		m.levels = append(m.levels, &modelLevel{priority: priority, since: m.pops})
	}
	l := m.levels[i]
	waited := m.waits(l)
	j := slices.IndexFunc(l.parts, func(p *modelPart) bool { return p.group == group })
	if j < 0 {
		j = len(l.parts)
		p := &modelPart{level: l, group: group, left: m.weight(group), held: m.full(group)}
		l.parts = append(l.parts, p)
		m.ofGroup[group] = append(m.ofGroup[group], p)
	}
	l.parts[j].items = append(l.parts[j].items, key)
	m.waitsAgain(l, waited)
}

// waitsAgain brings a level that waits, and did not before, to the end of the levels.
func (m *fairModel) waitsAgain(l *modelLevel, waited bool) {
	if waited || !m.waits(l) {
		return
	}
	at := slices.Index(m.levels, l)
	m.levels = append(slices.Delete(m.levels, at, at+1), l)
	l.since = m.pops
}

func (m *fairModel) weight(group string) int { return max(1, m.weights[group]) }

func (m *fairModel) waits(l *modelLevel) bool {
	return slices.ContainsFunc(l.parts, func(p *modelPart) bool { return !p.held })
}

// tidy removes what is empty.
func (m *fairModel) tidy() {
	for _, l := range m.levels {
		l.parts = slices.DeleteFunc(l.parts, func(p *modelPart) bool {
			if len(p.items) > 0 {
				return false
			}
			parts := m.ofGroup[p.group] // the last one takes the place
			last := len(parts) - 1
			parts[slices.Index(parts, p)] = parts[last]
			m.ofGroup[p.group] = parts[:last]
			return true
		})
	}
	m.levels = slices.DeleteFunc(m.levels, func(l *modelLevel) bool { return len(l.parts) == 0 })
}

func (m *fairModel) get() string {
	var next *modelLevel
	for _, l := range m.levels {
		if m.waits(l) && (next == nil || l.priority > next.priority) {
			next = l
		}
	}
	if next == nil {
		return ""
	}
	for _, l := range m.levels {
		if m.waits(l) {
			if m.pops-l.since >= m.patience {
				next = l
			}
			break
		}
	}
	m.pops++
	next.since = m.pops
	i := slices.Index(m.levels, next)
	m.levels = append(slices.Delete(m.levels, i, i+1), next)

	i = slices.IndexFunc(next.parts, func(p *modelPart) bool { return !p.held })
	p := next.parts[i]
	key := p.items[0]
	p.items = p.items[1:]
	if p.left--; p.left == 0 {
		p.left = m.weight(p.group)
		next.parts = append(slices.Delete(next.parts, i, i+1), p)
	}
	m.tidy()
	m.processing[key] = true
	m.working[p.group]++
	for _, other := range m.ofGroup[p.group] {
		other.held = m.full(p.group)
	}
	return key
}

func (m *fairModel) done(key string) {
	if !m.processing[key] {
		return
	}
	delete(m.processing, key)
	group := groupOf(key)
	wasFull := m.full(group)
	m.working[group]--
	if wasFull {
		for _, p := range m.ofGroup[group] {
			l, waited := p.level, m.waits(p.level)
			i := slices.Index(l.parts, p)
			l.parts = append(slices.Delete(l.parts, i, i+1), p)
			p.held, p.left = false, m.weight(group)
			m.waitsAgain(l, waited)
		}
	}
	if priority, ok := m.again[key]; ok {
		delete(m.again, key)
		m.push(key, priority)
	}
}

func (m *fairModel) len() (n int) {
	for _, l := range m.levels {
		for _, p := range l.parts {
			n += len(p.items)
		}
	}
	return n
}

// fairWorld is a Fair beside its model.
type fairWorld struct {
	t       *testing.T
	q       *workqueue.Fair[string]
	m       *fairModel
	working []string
}

func newFairWorld(t *testing.T, patience int, weights, limits map[string]int) *fairWorld {
	return &fairWorld{t: t,
		q: workqueue.NewFair(workqueue.FairConfig[string]{
			Group:    groupOf,
			Weight:   func(group string) int { return weights[group] },
			Workers:  func(group string) int { return limits[group] },
			Patience: patience,
		}, workqueue.Config[string]{}),
		m: &fairModel{weights: weights, limits: limits, patience: patience,
			working: map[string]int{}, processing: map[string]bool{}, again: map[string]int{},
			ofGroup: map[string][]*modelPart{}},
	}
}

func (w *fairWorld) add(key string, priority int) {
	w.q.AddWithPriority(key, priority)
	w.m.add(key, priority)
}

// get gets the next item of both, or "".
func (w *fairWorld) get() string {
	w.t.Helper()
	key := w.m.get()
	ctx, cancel := context.WithCancel(w.t.Context())
	if key == "" {
		cancel() // a Get would wait
	} else {
		require.Equal(w.t, key, w.q.SnapshotOf(0, 1).Ready[0])
	}
	got, _ := w.q.GetWithContext(ctx)
	cancel()
	require.Equal(w.t, key, got)
	if key != "" {
		w.working = append(w.working, key)
	}
	return key
}

func (w *fairWorld) done(at int) {
	key := w.working[at]
	w.working = slices.Delete(w.working, at, at+1)
	w.q.Done(key)
	w.m.done(key)
}

// Random priorities, groups, weights and limits: a Fair hands out what the model does, and each
// law holds after each step.
func TestFair_Model(t *testing.T) {
	workqueue.SmallLimits(t)
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		weights, limits := map[string]int{}, map[string]int{}
		groups := 1 + random.IntN(6)
		for i := range groups {
			weights[fmt.Sprint("g", i)] = random.IntN(4)
			limits[fmt.Sprint("g", i)] = max(0, random.IntN(5)-2)
		}
		w := newFairWorld(t, 1+random.IntN(6), weights, limits)
		for range 400 {
			switch op := random.IntN(10); {
			case op < 5:
				w.add(fmt.Sprintf("g%d/%d", random.IntN(groups), random.IntN(12)), random.IntN(4)-2)
			case op < 8:
				w.get()
			case len(w.working) > 0:
				w.done(random.IntN(len(w.working)))
			}
			require.Equal(t, w.m.len(), w.q.Len(), "seed %d", seed)
			w.q.CheckLaws(t)
		}
		for len(w.working) > 0 || w.q.Len() > 0 {
			w.get()
			if len(w.working) > 0 {
				w.done(0)
			}
		}
		w.q.CheckLaws(t)
		require.Zero(t, w.q.Known())
	}
}

// Without limits and Patience, a snapshot has the items in the order in which workers get them.
func TestFair_SnapshotIsInOrder(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := newFairWorld(t, -1, map[string]int{"g1": 2, "g2": 3}, nil)
		w.m.patience = math.MaxInt
		for range 100 {
			if random.IntN(4) == 0 {
				w.get()
				continue
			}
			w.add(fmt.Sprintf("g%d/%d", random.IntN(4), random.IntN(30)), random.IntN(3))
		}
		snapshot := w.q.Snapshot().Ready
		require.Equal(t, snapshot[:5], w.q.SnapshotOf(0, 5).Ready)
		var got []string
		for w.q.Len() > 0 {
			got = append(got, w.get())
		}
		require.Equal(t, snapshot, got, "seed %d", seed)
	}
}

// Q3, with limits that keep items back.
func TestFair_WaitingWorkers(t *testing.T) {
	waitingWorkers(t, func() lawful {
		return workqueue.NewFair(workqueue.FairConfig[string]{
			Group:   func(key string) string { return string('a' + key[0]%3) },
			Workers: func(group string) int { return int(group[0] - 'a') },
		}, workqueue.Config[string]{})
	}, func(q lawful) bool { return q.(*workqueue.Fair[string]).HasReady() })
}

// T3: while a group waits, the others get at most their weights between two of its turns, however
// many keys they add, and whatever was queued before.
func TestFair_NoGroupStarves(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		weights, sum := map[string]int{}, 0
		groups := 2 + random.IntN(20)
		for i := range groups {
			weights[fmt.Sprint("g", i)] = 1 + random.IntN(9)
			sum += weights[fmt.Sprint("g", i)]
		}
		w := newFairWorld(t, 8, weights, nil)
		n, others := 0, 0
		add := func(group int) {
			n++
			w.q.Add(fmt.Sprintf("g%d/%d", group, n))
		}
		for range 500 {
			add(0)
		}
		for range 2000 {
			for range random.IntN(4) {
				add(random.IntN(groups))
			}
			key, _ := w.q.Get()
			w.q.Done(key)
			if others++; groupOf(key) == "g0" {
				others = 0
			}
			require.LessOrEqual(t, others, sum-weights["g0"], "seed %d", seed)
		}
	}
}

// T4: while keys of a low priority wait, the others get at most Patience keys, and one for each
// level, between two of them, however many keys of higher priorities are added.
func TestFair_NoPriorityStarves(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 4))
		patience, levels := 1+random.IntN(40), 2+random.IntN(10)
		w := newFairWorld(t, patience, nil, nil)
		for i := range 500 {
			w.q.AddWithPriority(fmt.Sprint("low/", i), -100)
		}
		for i, others, low := 0, 0, 500; low > 0; i++ {
			for range random.IntN(4) {
				w.q.AddWithPriority(fmt.Sprintf("high/%d-%d", i, random.IntN(9)),
					random.IntN(levels))
			}
			key, priority, _ := w.q.GetWithPriority()
			w.q.Done(key)
			if others++; priority == -100 {
				others, low = 0, low-1
			} else {
				require.Equal(t, "high", groupOf(key))
			}
			require.LessOrEqual(t, others, patience+levels, "seed %d", seed)
		}
	}
}

// Without patience, a key waits until no key of a higher priority is queued.
func TestFair_StrictPriorities(t *testing.T) {
	q := workqueue.NewFair(workqueue.FairConfig[string]{Patience: -1}, workqueue.Config[string]{})
	q.AddWithPriority("low", -1)
	for i := range 1000 {
		q.Add("high")
		key, priority, _ := q.GetWithPriority()
		require.Equal(t, "high", key, i)
		require.Zero(t, priority)
		q.Done(key)
	}
	key, priority, _ := q.GetWithPriority()
	require.Equal(t, "low", key)
	require.Equal(t, -1, priority)
}

// Two callers of Get start a goroutine for each item. After ShutDown they also get the items that a
// limit keeps back, and then shutdown = true.
func TestFair_ShutDownHandsOutHeldItems(t *testing.T) {
	for _, end := range []func(q *workqueue.Fair[string]){
		(*workqueue.Fair[string]).ShutDown, (*workqueue.Fair[string]).ShutDownWithDrain,
	} {
		synctest.Test(t, func(t *testing.T) {
			q := workqueue.NewFair(workqueue.FairConfig[string]{
				Workers: func(string) int { return 2 },
			}, workqueue.Config[string]{})
			for i := range 9 {
				q.Add(fmt.Sprint(i))
			}
			var callers sync.WaitGroup
			var items atomic.Int32
			for range 2 {
				callers.Go(func() {
					for key, shutdown := q.Get(); !shutdown; key, shutdown = q.Get() {
						items.Add(1)
						time.AfterFunc(time.Second, func() { q.Done(key) })
					}
				})
			}
			synctest.Wait()
			require.EqualValues(t, 2, items.Load())
			end(q)
			callers.Wait()
			require.EqualValues(t, 9, items.Load())
		})
	}
}
