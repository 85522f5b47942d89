// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/internal/tools/path/record"
)

// The functions below are written as package path would rewrite them.

type greeter interface{ Greet() }

type polite struct{}

func (polite) Greet() {
	defer record.Enter("p.polite.Greet")()
	record.Run()
}

// wait has been called when the trace starts; received runs while it is blocked.
func wait(received func()) {
	defer record.Enter("p.wait")()
	record.Run()
	record.Lock("p.mu")
	received()
	record.Wait()
	for range 2 {
		record.Run()
		func() {
			defer record.Enter("p.wait.func1")()
			record.Run()
			record.Via("p.greeter.Greet", greeter(polite{})).Greet()
		}()
	}
	record.Run()
	record.Unlock("p.mu")
}

func loop(received func()) {
	defer record.Enter("p.loop")()
	record.Run()
	wait(received)
}

func TestRecord(t *testing.T) {
	var before, during record.Trace
	func() {
		defer record.Enter("p.run")()
		record.Run()
		loop(func() {
			before = record.Stop()
			record.Start()
		})
		during = record.Stop()
		record.Run()
	}()

	assert.Empty(t, before, "nothing was started")
	if assert.Len(t, during, 1) {
		g := during[0]
		assert.Equal(t, "p.run", g.Bottom)
		assert.Equal(t, "p.wait", g.Waited)
		visits := make([]record.Visit, 0, len(g.Visits))
		for _, v := range g.Visits {
			visits = append(visits, record.Visit{
				Function: v.Function, Caller: v.Caller, Via: v.Via, Calls: v.Calls, Locks: v.Locks,
			})
		}
		assert.Equal(t, []record.Visit{
			{Function: "p.loop", Caller: "p.run"}, // it was called before, and returned
			{Function: "p.wait", Caller: "p.loop", Locks: []string{"p.mu"}},
			{Function: "p.wait.func1", Caller: "p.wait", Calls: 2},
			{
				Function: "p.polite.Greet", Caller: "p.wait.func1", Via: "p.greeter.Greet",
				Calls: 2,
			},
		}, visits)
	}
}
