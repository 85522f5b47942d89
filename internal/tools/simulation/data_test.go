// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// text returns what the nth object says: quotes, backslashes and characters of several bytes, which
// end anywhere in a buffer. Some texts are longer than each buffer.
func text(n int) string {
	size := n % 8
	if n%32 == 5 {
		size = 1500 + 20*n
	}
	return strings.Repeat(`"\é😀{}`, size)
}

// addIndex adds an index to the store. Any goroutine may call it.
func (p *process) addIndex() {
	name := fmt.Sprint("extra", p.added.Add(1))
	if err := p.informer.AddIndexers(store.Indexers{name: byParts}); err != nil {
		if !p.informer.IsStopped() {
			p.violate(1, "%s: add an index: %v", p.name, err)
		}
		return
	}
	p.cover("index added")
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	p.indexes = append(p.indexes, name)
}

// checkIndexes compares the indexes with the objects.
func (p *process) checkIndexes(indexer store.Indexer) {
	indexers := indexer.GetIndexers()
	for _, name := range p.indexes {
		if indexers[name] == nil {
			p.violate(1, "%s: index %s was added and is lost", p.name, name)
		}
	}
	for name, index := range indexers {
		want, got := map[string][]string{}, map[string][]string{}
		for _, obj := range indexer.List() {
			values, _ := index(obj)
			slices.Sort(values)
			for _, value := range slices.Compact(values) {
				want[value] = append(want[value], key(obj))
			}
		}
		for _, value := range indexer.ListIndexFuncValues(name) {
			got[value], _ = indexer.IndexKeys(name, value)
			slices.Sort(want[value])
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			p.violate(1, "%s: index %s holds %v, want %v", p.name, name, got, want)
			return
		}
		for _, obj := range indexer.List() {
			p.checkRelated(indexer, name, obj, want)
		}
	}
}

// checkRelated checks that an index finds each object that shares a value with obj, once.
func (p *process) checkRelated(
	indexer store.Indexer, name string, obj any, byValue map[string][]string,
) {
	var want, got []string
	values, _ := indexer.GetIndexers()[name](obj)
	for _, value := range values {
		want = append(want, byValue[value]...)
	}
	related, _ := indexer.Index(name, obj)
	for _, other := range related {
		got = append(got, key(other))
	}
	slices.Sort(want)
	slices.Sort(got)
	if want = slices.Compact(want); !slices.Equal(want, got) {
		p.violate(1, "%s: index %s has for %s %v, want %v", p.name, name, key(obj), got, want)
	}
}

func key(obj any) string {
	cm := obj.(*corev1.ConfigMap)
	return cm.Namespace + "/" + cm.Name
}

// The sizes of a large crowd, and of the part that is deleted last.
const crowdCount, crowdRest = 1100, 400

// isOfCrowd reports whether an object is one of many: a slow handler is not slow for it, or it
// would be behind for longer than a quiet time.
func isOfCrowd(key string) bool { return strings.HasPrefix(key, "default/c") }

// crowd creates many objects, and deletes them in two parts. One crowd of four is large.
func (w *world) crowd(n int) {
	count, rest := crowdCount, crowdRest
	if n%4 > 0 {
		count, rest = 60+n, 1+n/2
	}
	member := func(i int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprint("c", i), Labels: map[string]string{
					"team": "red",
				}, Annotations: map[string]string{"done": "1"},
			},
			Data: map[string]string{"write": "1"},
		}
	}
	for i := range count {
		obj := member(i)
		if w.server.Create(obj) == nil {
			w.wrote(obj)
		}
	}
	for _, begin := range []int{rest, 0} {
		w.advance(2 * time.Second)
		for i := begin; i < count; i++ {
			_ = w.server.Delete(member(i))
		}
		w.advance(2 * time.Second)
		for _, p := range w.processes {
			if !w.violated() && isClosed(p.informer.HasSyncedChecker().Done()) {
				p.checkIndexes(p.informer.GetIndexer())
			}
		}
	}
}

// arrivals are the frames of a watch that have passed the gate as a whole.
type arrivals struct {
	mu   sync.Mutex
	line []byte // of the frame that has not ended
	rv   uint64 // of the last one that has
}

var versionOf = regexp.MustCompile(`"resourceVersion":"(\d+)"`)

func (a *arrivals) read(part []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.line = append(a.line, part...)
	end := bytes.LastIndexByte(a.line, '\n')
	if end < 0 {
		return
	}
	begin := bytes.LastIndexByte(a.line[:end], '\n') + 1
	if found := versionOf.FindSubmatch(a.line[begin:end]); found != nil {
		a.rv = number(string(found[1]))
	}
	a.line = append(a.line[:0], a.line[end+1:]...)
}

// checkArrived checks that each event that has arrived as a whole has been applied.
func (p *process) checkArrived() {
	p.gate.mu.Lock()
	body := p.gate.watched
	p.gate.mu.Unlock()
	status := p.informer.Health().Reflector
	if body == nil || isClosed(body.closed) || status.Phase != reflector.Watching ||
		p.transforming.Load() > 0 {
		return
	}
	body.arrived.mu.Lock()
	defer body.arrived.mu.Unlock()
	if have := number(status.ResourceVersion); have < body.arrived.rv {
		p.violate(1, "%s has received version %d, and its reflector has reached %d", p.name,
			body.arrived.rv, have)
	}
}
