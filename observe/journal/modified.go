// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/internal/helpers/objects"
)

const (
	// maxSamples is the number of objects that are compared with a copy.
	maxSamples = 64
	// maxComparedBytes is the greatest size of an object that is compared.
	maxComparedBytes = 64 << 10
)

// sample is an object that a handler got, which is that of the informer's cache, with a copy of it
// from before the handler was called. Nothing but the informer may change it, by replacing it.
type sample struct{ object, copied runtime.Object }

// notKnown is the place of a change between two calls of a handler.
const notKnown = "a part of the program that is not known"

type sampleID struct{ informer, key string }

// Modified is an object of a cache that the program has changed. Other parts of the program read
// the changed object, although the server does not have it.
type Modified struct {
	Informer string   `json:"informer"`
	Key      string   `json:"key"`
	Fields   []string `json:"fields"` // paths, without the values; not of Secrets
	// Where is the handler or the reconcile that it was found after. Other goroutines may have
	// changed it meanwhile.
	Where string `json:"where"`
	Times int    `json:"times"` // objects of this informer that were changed
}

// watch begins to compare an object, if there is room and time.
func (j *Journal) watch(id sampleID, obj any) {
	object, ok := obj.(runtime.Object)
	j.mu.Lock()
	_, known := j.samples[id]
	full := !known && len(j.samples) >= maxSamples
	j.mu.Unlock()
	if !ok || full || !j.mayCompare(obj) {
		return
	}
	defer j.skip(obj)
	start := time.Now()
	small := isSmall(object)
	var copied runtime.Object
	if small {
		copied = object.DeepCopyObject()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.compared += time.Since(start)
	if small && reflect.TypeOf(copied) == reflect.TypeOf(object) { // not that of an embedded type
		j.unwatchLocked(id)
		j.samples[id] = sample{object, copied}
		j.sampled[id.key]++
	} else {
		j.unwatchLocked(id)
	}
}

func isSmall(object any) bool {
	if sized, ok := object.(interface{ Size() int }); ok {
		return sized.Size() <= maxComparedBytes
	}
	if u, ok := object.(runtime.Unstructured); ok {
		return left(u.UnstructuredContent(), maxComparedBytes) >= 0
	}
	text, err := json.Marshal(object)
	return err == nil && len(text) <= maxComparedBytes
}

// left subtracts from bytes about the size that a part of an object has as JSON. It stops below
// zero.
func left(value any, bytes int) int {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if bytes = left(field, bytes-len(key)-2); bytes < 0 {
				break
			}
		}
	case []any:
		for _, item := range value {
			if bytes = left(item, bytes); bytes < 0 {
				break
			}
		}
	case string:
		return bytes - len(value) - 2
	}
	return bytes - 4
}

// unwatch ends it: the cache has another object now.
func (j *Journal) unwatch(id sampleID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unwatchLocked(id)
}

func (j *Journal) unwatchLocked(id sampleID) {
	if _, watched := j.samples[id]; !watched {
		return
	}
	delete(j.samples, id)
	if j.sampled[id.key]--; j.sampled[id.key] == 0 {
		delete(j.sampled, id.key)
	}
}

// checkKey compares the objects with a key, at the end of a reconcile of that key.
func (j *Journal) checkKey(key, where string) {
	j.mu.Lock()
	var ids []sampleID
	for id := range j.samples {
		if id.key == key {
			ids = append(ids, id)
		}
	}
	j.mu.Unlock()
	for _, id := range ids {
		j.check(id, where)
	}
}

// check compares an object with its copy. Where is what the program did until now; a worker may
// have the key meanwhile.
func (j *Journal) check(id sampleID, where string) {
	j.mu.Lock()
	s, known := j.samples[id]
	j.mu.Unlock()
	if !known || !j.mayCompare(s.object) {
		return
	}
	defer j.skip(s.object)
	start := time.Now()
	fields := []string{}
	same := reflect.DeepEqual(s.object, s.copied) || // much faster, and mostly true
		equality.Semantic.DeepEqual(s.object, s.copied)
	if !same && !objects.IsSecret(s.object) {
		fields = differences(s.copied, s.object)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.compared += time.Since(start)
	if same || j.samples[id].copied != s.copied {
		return // the other check of this sample has reported it
	}
	j.unwatchLocked(id)
	meanwhile := " or other code before its end"
	if where == notKnown {
		meanwhile = ""
	}
	for w, worker := range j.workers {
		if by := "a reconcile by queue " + w.queue.name; where != by &&
			strings.TrimPrefix(worker.key, "/") == id.key {
			where += " or " + by
			break
		}
	}
	m := entry(j.modified, id.informer, func() *Modified {
		return &Modified{Informer: id.informer, Key: id.key, Fields: fields,
			Where: where + meanwhile}
	})
	m.Times++
}
