// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/compat/workqueue"
	core "example.com/informerstack/workqueue"
)

// In a program without devtools a queue costs what it costs in the core.
func TestNewTyped_AllocatesNothingMoreThanTheCore(t *testing.T) {
	want := testing.AllocsPerRun(100, func() {
		core.NewTyped(core.Config[string]{DrainProcessingOnly: true})
	})
	got := testing.AllocsPerRun(100, func() { workqueue.NewTyped[string]() })
	assert.Equal(t, want, got)
}
