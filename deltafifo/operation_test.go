// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"fmt"
	"strings"

	"example.com/informerstack/store"
)

// operation is one step of a random script.
type operation struct {
	name string
	args []string
}

func (op operation) String() string {
	return strings.Join(append([]string{op.name}, op.args...), " ")
}

// operationOf maps small numbers to operations, so that a fuzzer can write scripts.
func operationOf(a, b, rv byte) operation {
	key := fmt.Sprintf("ns/%c", 'a'+b%5)
	at := fmt.Sprintf("%s@%d", key, rv)
	switch a % 16 {
	case 0, 1:
		return operation{"added", []string{at}}
	case 2, 3:
		return operation{"updated", []string{at}}
	case 4, 5:
		return operation{"deleted", []string{at}}
	case 6:
		return operation{"gone", []string{at}}
	case 7: // each bit of b lists a key
		var list []string
		for i := range 5 {
			if b>>i&1 == 1 {
				list = append(list, fmt.Sprintf("ns/%c@%d", 'a'+i, rv))
			}
		}
		if b>>5&1 == 1 {
			list = append(list, list...)
		}
		return operation{"replace", list}
	case 8:
		return operation{"resync", nil}
	case 9:
		return operation{"bookmark", []string{fmt.Sprint(rv)}}
	case 10:
		return operation{"batch", nil}
	case 11:
		return operation{"known", []string{at}}
	case 12:
		return operation{"added", []string{"keyless"}}
	}
	return operation{"pop", nil}
}

// step applies an operation and describes its visible effects.
func (w *world) step(op operation, k kind) string {
	var out string
	switch {
	case op.name == "known":
		w.known.set(parseObject(op.args[0]))
	case op.name == "batch" && k.real:
		out = w.popBatch()
	case op.name == "pop":
		out = w.pop()
	case op.name != "batch":
		out = describeError(w.send(op))
	}
	w.laws(w.t)
	return fmt.Sprintf("%s synced=%t", out, w.queue.HasSynced())
}

// send applies the operation of a producer.
func (w *world) send(op operation) error {
	switch op.name {
	case "added":
		return w.queue.Add(parseObject(op.args[0]))
	case "updated":
		return w.queue.Update(parseObject(op.args[0]))
	case "deleted":
		return w.queue.Delete(parseObject(op.args[0]))
	case "gone": // a delete that is a tombstone
		obj := parseObject(op.args[0])
		return w.queue.Delete(store.DeletedFinalStateUnknown{Key: keyForMessage(obj), Obj: obj})
	case "replace":
		return w.queue.Replace(objects(op.args...), "100")
	case "resync":
		return w.queue.Resync()
	case "bookmark":
		if q, ok := w.queue.(interface{ Bookmark(string) error }); ok {
			return q.Bookmark(op.args[0])
		}
		return nil
	}
	w.t.Fatalf("no operation %q", op.name)
	return nil
}
