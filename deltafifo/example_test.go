// SPDX-License-Identifier: Apache-2.0

package deltafifo_test

import (
	"fmt"
	"strings"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/store"
)

// pod is the least that a queue needs of an object: something to compute a key from.
type pod struct{ name, phase string }

func podKey(obj any) (string, error) { return obj.(pod).name, nil }

// describe spells what a Pop took out.
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

// A Pop takes out everything that happened to one object.
func ExampleDeltaFIFO() {
	queue := deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{KeyFunction: podKey})
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

// A relist that no longer holds an object reports its delete as a tombstone.
func ExampleDeltaFIFO_Replace() {
	cache := store.New(podKey) // what the consumer knows
	cache.Add(pod{"web", "Running"})
	cache.Add(pod{"db", "Running"})
	queue := deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{
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

// A RealFIFO hands over many objects' changes at once, in the order of arrival.
func ExampleRealFIFO_PopBatch() {
	queue := deltafifo.NewRealFIFO(deltafifo.RealFIFOOptions{KeyFunction: podKey, AtomicEvents: true})
	queue.Add(pod{"web", "Pending"})
	queue.Add(pod{"db", "Pending"})
	queue.Update(pod{"web", "Running"}) // the second of web: another batch

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

// Why a DeltaFIFO, and not a channel or a queue of keys? The same events go through all three while the consumer sleeps.
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

	fmt.Println("A channel blocks the producer when it is full, or drops:")
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

	fmt.Println("A queue of keys knows the newest state alone. That web ever lived is lost, and so is its delete:")
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

	fmt.Println("A DeltaFIFO holds one entry a key, and in it all that happened:")
	cache := store.New(podKey)
	queue := deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{KeyFunction: podKey, KnownObjects: cache})
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

	fmt.Println("Because it asks what the consumer knows, a delete that comes after the Pop survives, and a second one does not:")
	queue.Delete(pod{"db", "Running"})
	queue.Pop(consume)
	queue.Delete(pod{"db", "Running"})
	queue.Close()
	_, err := queue.Pop(consume)
	fmt.Println("  nothing left:", err == deltafifo.ErrFIFOClosed)
	// Output:
	// A channel blocks the producer when it is full, or drops:
	//   dropped: delete web
	//   dropped: update db
	//   consumer sees: add {web Pending}
	//   consumer sees: add {db Pending}
	//   consumer sees: update {web Running}
	// A queue of keys knows the newest state alone. That web ever lived is lost, and so is its delete:
	//   consumer sees: {db Running}
	// A DeltaFIFO holds one entry a key, and in it all that happened:
	//   consumer sees: Added web(Pending), Updated web(Running), Deleted web(Running)
	//   consumer sees: Added db(Pending), Updated db(Running)
	// Because it asks what the consumer knows, a delete that comes after the Pop survives, and a second one does not:
	//   consumer sees: Deleted db(Running)
	//   nothing left: true
}
