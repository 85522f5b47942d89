// SPDX-License-Identifier: Apache-2.0

package deltafifo_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/store"
)

// pod is a small object with a key.
type pod struct{ name, phase string }

func podKey(obj any) (string, error) { return obj.(pod).name, nil }

// describe formats the deltas of a Pop.
func describe(deltas deltafifo.Deltas) string {
	var words []string
	for _, d := range deltas {
		switch obj := d.Object.(type) {
		case pod:
			words = append(words, fmt.Sprintf("%s %s(%s)", d.Type, obj.name, obj.phase))
		case store.DeletedFinalStateUnknown:
			words = append(words, fmt.Sprintf("%s %s (last seen as %v)", d.Type, obj.Key, obj.Obj))
		}
	}
	return strings.Join(words, ", ")
}

// A Pop returns all changes of one object.
func ExampleDeltaFIFO() {
	queue := deltafifo.NewDeltaFIFO(deltafifo.Options{KeyFunction: podKey})
	queue.Add(pod{"web", "Pending"})
	queue.Add(pod{"db", "Pending"})
	queue.Update(pod{"web", "Running"})
	queue.Delete(pod{"web", "Running"})

	for range 2 {
		queue.Pop(func(obj any, isInInitialList bool) error {
			fmt.Println(describe(obj.(deltafifo.Deltas)))
			return nil
		})
	}
	// Output:
	// Added web(Pending), Updated web(Running), Deleted web(Running)
	// Added db(Pending)
}

// If a relist does not contain an object, its delete is reported as a tombstone.
func ExampleDeltaFIFO_Replace() {
	cache := store.New(podKey, store.Options{}) // the objects that the consumer knows
	cache.Add(pod{"web", "Running"})
	cache.Add(pod{"db", "Running"})
	queue := deltafifo.NewDeltaFIFO(deltafifo.Options{
		KeyFunction:           podKey,
		KnownObjects:          cache,
		EmitDeltaTypeReplaced: true,
	})
	queue.Replace([]any{pod{"web", "Running"}}, "42")

	for !queue.HasSynced() {
		queue.Pop(func(obj any, isInInitialList bool) error {
			fmt.Println(describe(obj.(deltafifo.Deltas)))
			return nil
		})
	}
	// Output:
	// Replaced web(Running)
	// Deleted db (last seen as {db Running})
}

// A RealFIFO delivers the changes of many objects at once, in the order of arrival.
func ExampleRealFIFO_PopBatch() {
	queue := deltafifo.NewRealFIFO(deltafifo.Options{KeyFunction: podKey, AtomicEvents: true})
	queue.Add(pod{"web", "Pending"})
	queue.Add(pod{"db", "Pending"})
	queue.Update(pod{"web", "Running"}) // the second change of web: another batch

	batch := func(deltas []deltafifo.Delta, isInInitialList bool) error {
		fmt.Println("batch: ", describe(deltas))
		return nil
	}
	single := func(obj any, isInInitialList bool) error {
		fmt.Println("single:", describe(obj.(deltafifo.Deltas)))
		return nil
	}
	queue.PopBatch(batch, single)
	queue.PopBatch(batch, single)
	// Output:
	// batch:  Added web(Pending), Added db(Pending)
	// single: Updated web(Running)
}

// The same events go through a channel, a queue of keys and a DeltaFIFO while the consumer sleeps.
func Example_whyDeltas() {
	type event struct {
		what string
		pod  pod
	}
	script := []event{
		{"add", pod{"web", "Pending"}},
		{"add", pod{"db", "Pending"}},
		{"update", pod{"web", "Running"}},
		{"delete", pod{"web", "Running"}},
		{"update", pod{"db", "Running"}},
	}

	fmt.Println("A full channel blocks the producer or drops events:")
	channel := make(chan event, 3)
	for _, e := range script {
		select {
		case channel <- e:
		default:
			fmt.Println("  dropped:", e.what, e.pod.name)
		}
	}
	close(channel)
	for e := range channel {
		fmt.Println("  consumer sees:", e.what, e.pod)
	}

	fmt.Println("A queue of keys has only the newest states. web and its delete are lost:")
	newest, keys := map[string]pod{}, []string{}
	for _, e := range script {
		if _, queued := newest[e.pod.name]; !queued && e.what != "delete" {
			keys = append(keys, e.pod.name)
		}
		newest[e.pod.name] = e.pod
		if e.what == "delete" {
			delete(newest, e.pod.name)
		}
	}
	for _, key := range keys {
		if p, exists := newest[key]; exists {
			fmt.Println("  consumer sees:", p)
		}
	}

	fmt.Println("A DeltaFIFO has one entry for each key, with all its changes:")
	cache := store.New(podKey, store.Options{})
	queue := deltafifo.NewDeltaFIFO(deltafifo.Options{KeyFunction: podKey, KnownObjects: cache})
	for _, e := range script {
		switch e.what {
		case "add":
			queue.Add(e.pod)
		case "update":
			queue.Update(e.pod)
		case "delete":
			queue.Delete(e.pod)
		}
	}
	consume := func(obj any, _ bool) error {
		fmt.Println("  consumer sees:", describe(obj.(deltafifo.Deltas)))
		newest := obj.(deltafifo.Deltas).Newest()
		if newest.Type == deltafifo.Deleted {
			return cache.Delete(newest.Object)
		}
		return cache.Update(newest.Object)
	}
	queue.Pop(consume)
	queue.Pop(consume)

	fmt.Println("It keeps the delete of an object that the consumer knows, and drops a second one:")
	queue.Delete(pod{"db", "Running"})
	queue.Pop(consume)
	queue.Delete(pod{"db", "Running"})
	queue.Close()
	_, err := queue.Pop(consume)
	fmt.Println("  nothing left:", err == deltafifo.ErrFIFOClosed)
	// Output:
	// A full channel blocks the producer or drops events:
	//   dropped: delete web
	//   dropped: update db
	//   consumer sees: add {web Pending}
	//   consumer sees: add {db Pending}
	//   consumer sees: update {web Running}
	// A queue of keys has only the newest states. web and its delete are lost:
	//   consumer sees: {db Running}
	// A DeltaFIFO has one entry for each key, with all its changes:
	//   consumer sees: Added web(Pending), Updated web(Running), Deleted web(Running)
	//   consumer sees: Added db(Pending), Updated db(Running)
	// It keeps the delete of an object that the consumer knows, and drops a second one:
	//   consumer sees: Deleted db(Running)
	//   nothing left: true
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
