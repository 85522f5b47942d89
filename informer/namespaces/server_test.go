// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/reflector"
)

// server has ConfigMaps in namespaces, and one log of all changes. Each namespace can fail alone.
type server struct {
	narrate *narrate.Log

	mu      sync.Mutex
	rv      int
	objects map[string]*corev1.ConfigMap // by namespace/name
	log     []entry
	spaces  map[string]*space
}

// entry is a change of one object. key is gone after it if its object is nil.
type entry struct {
	rv    int
	at    time.Time
	key   string
	gone  bool
	event watch.Event
}

// space is what the server does with the requests of one namespace.
type space struct {
	failure   error         // if not nil, every request fails with it
	noList    error         // if not nil, every list fails with it
	hanging   chan struct{} // if not nil, requests wait until it is closed, and watches are silent
	isMute    bool          // watches that are opened are silent
	compacted int           // watches from before this version expire
	watches   map[*serverWatch]bool
	lists     int
	questions int
	opened    int // watches so far
}

func newServer() *server {
	return &server{objects: map[string]*corev1.ConfigMap{}, spaces: map[string]*space{}}
}

func (s *server) spaceLocked(namespace string) *space {
	if s.spaces[namespace] == nil {
		s.spaces[namespace] = &space{watches: map[*serverWatch]bool{}}
	}
	return s.spaces[namespace]
}

// put creates or updates an object.
func (s *server) put(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	namespace, name, _ := strings.Cut(key, "/")
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, ResourceVersion: strconv.Itoa(s.rv),
	}}
	kind := watch.Added
	if s.objects[key] != nil {
		kind = watch.Modified
	}
	s.objects[key] = obj
	s.publishLocked(key, kind, obj)
	return s.rv
}

func (s *server) delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[key] == nil {
		return
	}
	s.rv++
	obj := s.objects[key].DeepCopy()
	obj.ResourceVersion = strconv.Itoa(s.rv)
	delete(s.objects, key)
	s.publishLocked(key, watch.Deleted, obj)
}

func (s *server) publishLocked(key string, t watch.EventType, obj *corev1.ConfigMap) {
	s.narrate.Event("server", "%s %s@%d", t, key, s.rv)
	e := entry{s.rv, time.Now(), key, t == watch.Deleted, watch.Event{Type: t, Object: obj}}
	s.log = append(s.log, e)
	for _, namespace := range []string{obj.Namespace, metav1.NamespaceAll} {
		for w := range s.spaceLocked(namespace).watches {
			w.send(e.event)
		}
	}
}

// bookmark sends one to each open watch.
func (s *server) bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := &corev1.ConfigMap{}
	obj.ResourceVersion = strconv.Itoa(s.rv)
	for _, space := range s.spaces {
		for w := range space.watches {
			w.send(watch.Event{Type: watch.Bookmark, Object: obj.DeepCopy()})
		}
	}
}

// fail lets every request of a namespace fail, and ends its watches. nil heals it.
func (s *server) fail(namespace string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	space := s.spaceLocked(namespace)
	space.failure = err
	if err != nil {
		reason := apierrors.ReasonForError(err)
		s.narrate.Event("server", "namespace %s fails: %v", namespace, reason)
		space.cut()
	}
}

// hang lets a namespace hang until heal is called.
func (s *server) hang(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if space := s.spaceLocked(namespace); space.hanging == nil {
		s.narrate.Event("server", "namespace %s hangs", namespace)
		space.hanging = make(chan struct{})
		for w := range space.watches {
			w.silent = true
		}
	}
}

// mute lets the watches of a namespace that are opened from now on be silent until heal is called.
func (s *server) mute(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spaceLocked(namespace).isMute = true
}

// heal ends all trouble of a namespace.
func (s *server) heal(namespace string) {
	s.fail(namespace, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	space := s.spaceLocked(namespace)
	if space.hanging != nil {
		close(space.hanging)
		space.hanging = nil
		space.cut()
	}
	if space.isMute {
		space.isMute = false
		space.cut()
	}
}

// cut ends the watches of a namespace. If they expire, the next ones from before now do.
func (s *server) cut(namespace string, expire bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	space := s.spaceLocked(namespace)
	if expire {
		space.compacted = s.rv
	}
	space.cut()
}

func (s *space) cut() {
	for w := range s.watches {
		w.close()
	}
	clear(s.watches)
}

// answer waits while the namespace hangs. It returns its failure.
func (s *server) answer(ctx context.Context, namespace string) error {
	s.mu.Lock()
	hanging := s.spaceLocked(namespace).hanging
	s.mu.Unlock()
	if hanging != nil {
		select {
		case <-hanging:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spaceLocked(namespace).failure
}

func (s *server) list(
	ctx context.Context, namespace string, options metav1.ListOptions,
) (runtime.Object, error) {
	if err := s.answer(ctx, namespace); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.spaceLocked(namespace).noList; err != nil {
		return nil, err
	}
	if listwatch.IsQuestion(options) {
		s.spaceLocked(namespace).questions++
	} else {
		s.spaceLocked(namespace).lists++
	}
	list := &corev1.ConfigMapList{}
	list.ResourceVersion = strconv.Itoa(s.rv)
	for _, obj := range s.objects {
		if obj.Namespace == namespace {
			list.Items = append(list.Items, *obj.DeepCopy())
		}
	}
	slices.SortFunc(list.Items, func(a, b corev1.ConfigMap) int {
		return strings.Compare(a.Name, b.Name)
	})
	return list, nil
}

func (s *server) watch(
	ctx context.Context, namespace string, options metav1.ListOptions,
) (watch.Interface, error) {
	if err := s.answer(ctx, namespace); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	space := s.spaceLocked(namespace)
	from, _ := strconv.Atoi(options.ResourceVersion)
	if from < space.compacted {
		return nil, apierrors.NewResourceExpired("compacted")
	}
	w := &serverWatch{server: s, space: space, events: make(chan watch.Event, 10_000),
		silent: space.isMute}
	for _, e := range s.log {
		if e.rv > from && isIn(e.key, namespace) {
			w.send(e.event)
		}
	}
	space.opened++
	space.watches[w] = true
	return w, nil
}

func isIn(key, namespace string) bool {
	return namespace == metav1.NamespaceAll || strings.HasPrefix(key, namespace+"/")
}

// openWatches counts the watches of a namespace that are open.
func (s *server) openWatches(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spaceLocked(namespace).watches)
}

// serverWatch is an open watch. The server's mu guards its fields.
type serverWatch struct {
	server *server
	space  *space
	events chan watch.Event
	silent bool
	closed bool
}

func (w *serverWatch) send(e watch.Event) {
	if !w.silent {
		w.events <- e
	}
}

func (w *serverWatch) close() {
	if !w.closed {
		w.closed = true
		close(w.events)
	}
}

func (w *serverWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *serverWatch) Stop() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	delete(w.space.watches, w)
	w.close()
}

// listWatch is the server as one namespace shows it, without streaming lists.
type listWatch struct{ reflector.ListWatch }

func (*listWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (s *server) in(namespace string) reflector.ListerWatcher {
	return &listWatch{reflector.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			return s.list(ctx, namespace, options)
		},
		WatchFuncWithContext: func(
			ctx context.Context, options metav1.ListOptions,
		) (watch.Interface, error) {
			return s.watch(ctx, namespace, options)
		},
	}}
}

// content returns the server's objects in a namespace, as namespace/name@version.
func (s *server) content(namespace string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, obj := range s.objects {
		if obj.Namespace == namespace {
			all = append(all, fmt.Sprintf("%s@%s", key, obj.ResourceVersion))
		}
	}
	return all
}

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "",
		fmt.Errorf("no role"))
	errSick = apierrors.NewInternalError(fmt.Errorf("sick"))
)
