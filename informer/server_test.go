// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/reflector"
)

const testNamespace = "ns"

// server is a ListerWatcher, ours and client-go's: a collection of ConfigMaps and a log in order of
// resourceVersions.
//
//	V1  a watch from n delivers the events of the log after n, each once, or 410 if the log does
//	    not reach back to n
//	V2  events in log are in ascending order of rv, all after compacted
type server struct {
	*reflector.ListWatch
	streaming bool // supports streaming lists
	narrate   *narrate.Log

	mu        sync.Mutex
	rv        int
	uid       int
	compacted int
	objects   map[string]*corev1.ConfigMap
	order     []string // order of creation and of lists
	log       []logged
	watches   map[*serverWatch]bool
	failure   error // if set, every request fails with it
	lists     int
	opened    int
}

type logged struct {
	rv    int
	event watch.Event
}

func newServer() *server {
	s := &server{objects: map[string]*corev1.ConfigMap{}, watches: map[*serverWatch]bool{}}
	s.ListWatch = &reflector.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	return s
}

// IsWatchListSemanticsUnSupported makes reflectors LIST first.
func (s *server) IsWatchListSemanticsUnSupported() bool { return !s.streaming }

func (s *server) create(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	s.uid++
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: name, UID: types.UID(fmt.Sprint("uid-", s.uid)),
		ResourceVersion: strconv.Itoa(s.rv),
	}}
	s.objects[name] = obj
	s.order = append(s.order, name)
	s.publishLocked(watch.Added, obj)
}

func (s *server) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[name] != nil
}

// write is update that returns the new resourceVersion.
func (s *server) write(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	obj := s.objects[name].DeepCopy()
	obj.ResourceVersion = strconv.Itoa(s.rv)
	s.objects[name] = obj
	s.publishLocked(watch.Modified, obj)
	return s.rv
}

func (s *server) update(name string) { s.write(name) }

// delete removes an object. No watch reports a lost delete.
func (s *server) delete(name string, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	obj := s.objects[name].DeepCopy()
	obj.ResourceVersion = strconv.Itoa(s.rv)
	delete(s.objects, name)
	s.order = slices.DeleteFunc(s.order, func(n string) bool { return n == name })
	if lost {
		s.narrate.Event("server", "DELETED %s@%d, in no event", name, s.rv)
	} else {
		s.publishLocked(watch.Deleted, obj)
	}
}

func (s *server) publishLocked(t watch.EventType, obj *corev1.ConfigMap) {
	s.narrate.Event("server", "%s %s@%d", t, obj.Name, s.rv)
	e := logged{rv: s.rv, event: watch.Event{Type: t, Object: obj}}
	s.log = append(s.log, e)
	for w := range s.watches {
		w.events <- e.event
	}
}

// cut closes every watch without an error.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.narrate.Event("server", "closes every watch")
	for w := range s.watches {
		w.closeLocked()
	}
}

// expire drops the log and ends every watch with 410 Gone.
func (s *server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	s.log, s.compacted = nil, s.rv
	s.narrate.Event("server", "forgets its log; ends every watch with 410 Gone")
	gone := apierrors.NewResourceExpired("too old resource version").Status()
	for w := range s.watches {
		w.events <- watch.Event{Type: watch.Error, Object: &gone}
		w.closeLocked()
	}
}

// bookmark sends the newest resourceVersion to every watch.
func (s *server) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.narrate.Event("server", "BOOKMARK %d", s.rv)
	for w := range s.watches {
		w.events <- s.bookmarkLocked(false)
	}
}

func (s *server) bookmarkLocked(endsInitial bool) watch.Event {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.rv)}}
	if endsInitial {
		obj.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return watch.Event{Type: watch.Bookmark, Object: obj}
}

// elsewhere changes an object outside of this collection.
func (s *server) elsewhere() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	s.narrate.Event("server", "another collection changes: resourceVersion %d", s.rv)
}

// fail makes every request fail with err. nil ends that.
func (s *server) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
	if err != nil {
		s.narrate.Event("server", "every request fails: %v", err)
	} else {
		s.narrate.Event("server", "requests succeed again")
	}
}

func (s *server) requests() (lists, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, s.opened
}

func (s *server) openWatches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

func (s *server) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.failure != nil {
		s.narrate.Event("reflector", "LIST: %v", s.failure)
		return nil, s.failure
	}
	s.narrate.Event("reflector", "LIST at %d: %v", s.rv, s.order)
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.rv)}}
	for _, name := range s.order {
		list.Items = append(list.Items, *s.objects[name])
	}
	return list, ctx.Err()
}

func (s *server) watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	if s.failure != nil {
		s.narrate.Event("reflector", "WATCH from %q: %v", options.ResourceVersion, s.failure)
		return nil, s.failure
	}
	s.narrate.Event("reflector", "WATCH from %q", options.ResourceVersion)
	from, _ := strconv.Atoi(options.ResourceVersion)
	initial := options.SendInitialEvents != nil && *options.SendInitialEvents
	if !initial && from < s.compacted {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	w := &serverWatch{server: s, events: make(chan watch.Event, 1<<14)}
	s.watches[w] = true
	if initial {
		for _, name := range s.order {
			w.events <- watch.Event{Type: watch.Added, Object: s.objects[name].DeepCopy()}
		}
		w.events <- s.bookmarkLocked(true)
		return w, nil
	}
	for _, e := range s.log {
		if e.rv > from {
			w.events <- e.event
		}
	}
	return w, nil
}

// listFirst makes reflectors LIST first.
type listFirst struct{ *reflector.ListWatch }

func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

// staying is a server of pods that stays at a resourceVersion, and has no events.
func staying(resourceVersion string, pods ...corev1.Pod) listFirst {
	return listFirst{&reflector.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.PodList{Items: pods}
			list.ResourceVersion = resourceVersion
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}}
}

type serverWatch struct {
	server *server
	events chan watch.Event
}

func (w *serverWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *serverWatch) Stop() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.closeLocked()
}

func (w *serverWatch) closeLocked() {
	if w.server.watches[w] {
		delete(w.server.watches, w)
		close(w.events)
	}
}
