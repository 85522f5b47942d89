// SPDX-License-Identifier: Apache-2.0

package devtools

import "testing"

// One question of an open page, in a program with 20 informers and 100,000 objects that rests.
func BenchmarkPage(b *testing.B) {
	p := newBenchProgram(b)
	defer p.stop()
	for n := range 100 {
		p.change(n)
	}
	p.done.Wait()
	for b.Loop() {
		b.SetBytes(int64(ask(b, "limit=20&brief=1")))
	}
}
