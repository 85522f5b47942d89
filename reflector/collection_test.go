// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/store"
)

// collection is pods on a server: one log of changes, read by LIST and WATCH. It is a
// ListerWatcher.
//
// With chaos it fails now and then, in each way the error matrix has.
type collection struct {
	server
	chaos  *rand.Rand    // nil: no failures
	stalls bool          // chaos includes connections that die in silence
	lag    int           // how many changes the watch cache is behind, for LISTs at "0"
	log    []watch.Event // log[i] made resourceVersion i+1
	sent   []string      // the requests
	events *narrate.Log

	compacted int // resourceVersions up to here are forgotten
	changed   chan struct{}
}

func newCollection() *collection {
	c := &collection{changed: make(chan struct{})}
	c.serve(c.list, c.watch)
	return c
}

func (c *collection) do(kind watch.EventType, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := pod(fmt.Sprintf("%s@%d", name, len(c.log)+1))
	c.log = append(c.log, watch.Event{Type: kind, Object: p})
	c.events.Event("server", "%s %s@%s", kind, name, p.ResourceVersion)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *collection) create(name string) { c.do(watch.Added, name) }
func (c *collection) update(name string) { c.do(watch.Modified, name) }
func (c *collection) delete(name string) { c.do(watch.Deleted, name) }

// compact forgets the past: a watch that begins there gets 410.
func (c *collection) compact() {
	c.set(func() { c.compacted = len(c.log) })
}

// disconnect ends every open watch.
func (c *collection) disconnect() {
	c.events.Event("server", "closes every watch")
	c.endWatches()
}

// at returns the objects at a resourceVersion, by name.
func (c *collection) at(resourceVersion int) []v1.Pod {
	pods := map[string]v1.Pod{}
	for _, change := range c.log[:resourceVersion] {
		p := change.Object.(*v1.Pod)
		if change.Type == watch.Deleted {
			delete(pods, p.Name)
		} else {
			pods[p.Name] = *p
		}
	}
	var list []v1.Pod
	for _, p := range pods {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b v1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// requests returns the requests since the last time.
func (c *collection) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return sent
}

func (c *collection) state() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var words []string
	for _, p := range c.at(len(c.log)) {
		words = append(words, p.Name+"@"+p.ResourceVersion)
	}
	return strings.Join(words, " ")
}

func (c *collection) list(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if err := c.request("LIST", options); err != nil {
		return nil, err
	}
	at := len(c.log)
	switch options.ResourceVersion {
	case "":
	case "0":
		at -= c.lag
	default:
		wanted, _ := strconv.Atoi(options.ResourceVersion)
		if wanted > at-c.lag {
			c.events.Event("server", "504: the watch cache is at %d", at-c.lag)
			return nil, apiErrors["toolarge"]
		}
		at -= c.lag
	}
	start, token := 0, options.Continue
	if token != "" {
		if _, err := fmt.Sscanf(token, "%d/%d", &at, &start); err != nil {
			return nil, apierrors.NewBadRequest(token)
		}
		if at < c.compacted {
			return nil, apiErrors["expired"]
		}
	}
	list := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(at)}}
	list.Items = c.at(at)[start:]
	if limit := int(options.Limit); limit > 0 && len(list.Items) > limit {
		list.Items = list.Items[:limit]
		list.Continue = fmt.Sprintf("%d/%d", at, start+limit)
	}
	return list, nil
}

func (c *collection) watch(options metav1.ListOptions) (func(*playedWatch), error) {
	if err := c.request("WATCH", options); err != nil {
		return nil, err
	}
	from, _ := strconv.Atoi(options.ResourceVersion)
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents
	if from < c.compacted && !initial {
		c.events.Event("server", "410: the log begins after %d", c.compacted)
		return nil, apiErrors["expired"]
	}
	var first []watch.Event
	if initial {
		from = len(c.log)
		for _, p := range c.at(from) {
			first = append(first, watch.Event{Type: watch.Added, Object: &p})
		}
		first = append(first, bookmark(strconv.Itoa(from), "true"))
	}
	timeout := time.Duration(*options.TimeoutSeconds) * time.Second
	if c.chaos != nil && c.chaos.IntN(4) == 0 {
		timeout = time.Duration(c.chaos.IntN(90_000)) * time.Millisecond
	}
	return func(w *playedWatch) { c.play(w, first, from, timeout) }, nil
}

// request notes a request. It returns an error now and then.
func (c *collection) request(verb string, options metav1.ListOptions) error {
	line := verb + " " + describe(options)
	c.sent = append(c.sent, line)
	c.events.Event("reflector", "%s", line)
	return c.fault()
}

// play sends what happened after from, and what happens.
func (c *collection) play(
	w *playedWatch, first []watch.Event, from int, timeout time.Duration,
) {
	deadline := time.After(timeout)
	for _, e := range first {
		if !w.send(e) {
			return
		}
	}
	for {
		c.mu.Lock()
		changed := c.changed
		pending := slices.Clone(c.log[from:])
		stalled := c.stalls && c.chaos != nil && c.chaos.IntN(200) == 0
		fault := c.fault()
		c.mu.Unlock()
		if stalled {
			<-w.stopped
			return
		}
		if fault != nil && len(pending) > 0 {
			if _, ok := fault.(apierrors.APIStatus); ok { // made above
				w.send(watch.Event{Type: watch.Error, Object: statusOf(fault)})
			}
			return
		}
		for _, change := range pending {
			if !w.send(change) {
				return
			}
		}
		from += len(pending)
		select {
		case <-w.stopped:
			return
		case <-w.cut:
			return
		case <-deadline:
			return
		case <-changed:
		}
	}
}

// fault returns an error now and then.
func (c *collection) fault() error {
	if c.chaos == nil || c.chaos.IntN(8) != 0 {
		return nil
	}
	names := []string{"gone", "expired", "toolarge", "429", "500", "forbidden", "refused", "broken"}
	return apiErrors[names[c.chaos.IntN(len(names))]]
}

// mapStore is the simplest Store: a map, and a record of its calls.
type mapStore struct {
	mu     sync.Mutex
	items  map[string]string // name -> resourceVersion
	diary  []string
	events *narrate.Log
	err    func() error // asked before each change
}

func (s *mapStore) change(what string, obj any, apply func(name, resourceVersion string)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		if err := s.err(); err != nil {
			return err
		}
	}
	name, _ := store.ObjectToName(obj)
	p := obj.(*v1.Pod)
	s.noteLocked(fmt.Sprintf("%s %s@%s", what, name, p.ResourceVersion))
	apply(p.Name, p.ResourceVersion)
	return nil
}

func (s *mapStore) put(name, resourceVersion string) { s.items[name] = resourceVersion }

func (s *mapStore) Add(obj any) error    { return s.change("add", obj, s.put) }
func (s *mapStore) Update(obj any) error { return s.change("update", obj, s.put) }

func (s *mapStore) Delete(obj any) error {
	return s.change("delete", obj, func(name, _ string) { delete(s.items, name) })
}

func (s *mapStore) Resync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked("resync")
	return nil
}

func (s *mapStore) Replace(list []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		if err := s.err(); err != nil {
			return err
		}
	}
	s.items = map[string]string{}
	for _, obj := range list {
		p := obj.(*v1.Pod)
		s.items[p.Name] = p.ResourceVersion
	}
	s.noteLocked(fmt.Sprintf("replace by %d", len(list)))
	return nil
}

func (s *mapStore) noteLocked(call string) {
	s.diary = append(s.diary, call)
	s.events.Event("store", "%s", call)
}

func (s *mapStore) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var words []string
	for name, resourceVersion := range s.items {
		words = append(words, name+"@"+resourceVersion)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// story returns the calls of the store since the last time.
func (s *mapStore) story() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	diary := s.diary
	s.diary = nil
	return diary
}
