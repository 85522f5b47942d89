// SPDX-License-Identifier: Apache-2.0

package deltafifo

import "testing"

// script reads operations from bytes, two for each operation.
func script(data []byte) []operation {
	var ops []operation
	for i := 0; i+1 < len(data) && len(ops) < 200; i += 2 {
		ops = append(ops, operationOf(data[i], data[i+1], byte(i/2)))
	}
	return ops
}

// fuzz compares scripts on our queues and on the model. All keep the laws.
func fuzz(f *testing.F, real bool) {
	smallLimits(f)
	f.Add([]byte{0, 0, 4, 0, 0, 0, 13, 0})                    // add, delete, add, pop
	f.Add([]byte{7, 3, 13, 0, 7, 2, 13, 0, 13, 0})            // two lists, the second smaller
	f.Add([]byte{11, 1, 8, 0, 2, 1, 8, 0, 13, 0})             // resyncs
	f.Add([]byte{0, 0, 0, 1, 2, 0, 10, 0, 9, 0, 10, 0, 7, 0}) // batches
	f.Add([]byte{6, 0, 4, 0, 6, 0, 7, 35, 12, 0, 13, 0})      // tombstones, duplicates, no key
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, k := range kinds {
			if k.real == real {
				compare(t, k, []string{naive, ours}, script(data))
			}
		}
	})
}

func FuzzDeltaFIFO(f *testing.F) { fuzz(f, false) }
func FuzzRealFIFO(f *testing.F)  { fuzz(f, true) }
