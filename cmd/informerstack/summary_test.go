// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/trace"
)

// A request may report after the stack has ended: it is neither counted nor written.
func TestSummary_IsTheLastWord(t *testing.T) {
	s := newSummary()
	written := 0
	write := func(trace.Event) { written++ }
	event := trace.Event{Hop: trace.Server, What: "LIST"}
	s.record(event, write)
	idle := &stack{
		informer:   informer.NewSharedIndexInformer(nil, nil, informer.SharedIndexInformerOptions{}),
		controller: controller.New("c", observe, controller.Options[string]{}),
	}
	defer idle.controller.Queue().ShutDown()
	taken := s.report(idle)
	s.record(event, write)
	assert.Equal(t, 1, taken.Counts[trace.Server]["LIST"])
	assert.Equal(t, 1, written)
}
