// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/store"
)

// recorder is a handler that records its calls:
//
//	initial a     OnAdd, isInInitialList
//	add a         OnAdd
//	update a      OnUpdate
//	unchanged a   OnUpdate, another object with the same resourceVersion, after a relist
//	resync a      OnUpdate with the same object twice
//	delete a      OnDelete
//	tombstone a   OnDelete of a DeletedFinalStateUnknown
//
// It also maintains a view: the collection as the handler knows it.
type recorder struct {
	mu     sync.Mutex
	lines  []string
	view   map[string]string // name -> resourceVersion
	wrong  []string          // calls that contradict the view
	block  chan struct{}     // if set, calls block until it is closed
	slow   time.Duration     // duration of each call
	panics map[string]bool   // lines with calls that panic
	onCall func(line string) // runs in the call

	narrate *narrate.Log
	name    string // before the lines of narrate
}

func newRecorder() *recorder { return &recorder{view: map[string]string{}} }

func (r *recorder) OnAdd(obj any, isInInitialList bool) {
	name, rv := describe(obj)
	r.call(map[bool]string{true: "initial ", false: "add "}[isInInitialList]+name, func() {
		if have, ok := r.view[name]; ok {
			r.wrong = append(r.wrong, fmt.Sprintf("add %s@%s over %s", name, rv, have))
		}
		r.view[name] = rv
	})
}

func (r *recorder) OnUpdate(oldObj, newObj any) {
	name, rv := describe(newObj)
	_, oldRV := describe(oldObj)
	word := "update "
	switch {
	case oldObj == newObj:
		word = "resync "
	case oldRV == rv:
		word = "unchanged "
	}
	r.call(word+name, func() {
		if have := r.view[name]; have != oldRV {
			r.wrong = append(r.wrong,
				fmt.Sprintf("update %s@%s from %s over %q", name, rv, oldRV, have))
		}
		r.view[name] = rv
	})
}

func (r *recorder) OnDelete(obj any) {
	name, _ := describe(obj)
	word := "delete "
	switch obj.(type) {
	case store.DeletedFinalStateUnknown, cache.DeletedFinalStateUnknown:
		word = "tombstone "
	}
	r.call(word+name, func() { delete(r.view, name) })
}

func (r *recorder) call(line string, replay func()) {
	if r.block != nil {
		<-r.block
	}
	if r.slow > 0 {
		time.Sleep(r.slow)
	}
	if r.onCall != nil {
		r.onCall(line)
	}
	if r.panics[line] {
		panic("handler panics at " + line)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.narrate.Event("handler", "%s%s", r.name, line)
	replay()
}

// take returns the lines since the last take. Adjacent lines of the same kind are sorted, because
// replays and resyncs have no order.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	for begin := 0; begin < len(lines); {
		word, _, _ := strings.Cut(lines[begin], " ")
		end := begin
		for end < len(lines) && strings.HasPrefix(lines[end], word+" ") {
			end++
		}
		if word == "initial" || word == "resync" {
			slices.Sort(lines[begin:end])
		}
		begin = end
	}
	return lines
}

func (r *recorder) snapshot() (view map[string]string, wrong []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	view = map[string]string{}
	for name, rv := range r.view {
		view[name] = rv
	}
	return view, slices.Clone(r.wrong)
}

// describe returns the name and resourceVersion of an object, or the name of a tombstone.
func describe(obj any) (name, rv string) {
	key := ""
	switch d := obj.(type) {
	case store.DeletedFinalStateUnknown:
		key = d.Key
	case cache.DeletedFinalStateUnknown:
		key = d.Key
	}
	if key != "" {
		return key[strings.Index(key, "/")+1:], ""
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj), ""
	}
	return m.GetName(), m.GetResourceVersion()
}
