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
	defer record.Enter("p.polite.Greet", false)()
	record.Run()
}

// wait has been called when the trace starts; received runs while it is blocked.
func wait(received func()) {
	defer record.Enter("p.wait", false)()
	record.Run()
	record.Lock("p.mu")
	received()
	record.Run()
	func() {
		defer record.Enter("p.wait", true)()
		record.Run()
		record.Via("p.greeter.Greet", greeter(polite{})).Greet()
	}()
	record.Run()
	record.Unlock("p.mu")
}

func loop(received func()) {
	defer record.Enter("p.loop", false)()
	record.Run()
	wait(received)
}

func TestRecord(t *testing.T) {
	var before, during record.Trace
	func() {
		defer record.Enter("p.run", false)()
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
				Function: v.Function, Caller: v.Caller, Via: v.Via, Held: v.Held, Taken: v.Taken,
			})
		}
		assert.Equal(t, []record.Visit{
			{Function: "p.loop", Caller: "p.run"}, // it was called before, and returned
			{Function: "p.wait", Caller: "p.loop", Taken: []string{"p.mu"}},
			{
				Function: "p.polite.Greet", Caller: "p.wait", Via: "p.greeter.Greet",
				Held: []string{"p.mu"},
			},
		}, visits)
	}
}

func TestRecord_LiteralAlone(t *testing.T) {
	literal := func() {
		defer record.Enter("p.New", true)()
		record.Run()
	}
	record.Start()
	literal()
	trace := record.Stop()
	assert.True(t, trace[0].Visits[0].Literal)
}
