// SPDX-License-Identifier: Apache-2.0

package configmaps

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
)

// Another client deletes the workload's objects and takes its names. The workload continues.
func TestWorkload_ToleratesAnotherClient(t *testing.T) {
	server := apitest.NewServer(apitest.Options{})
	w := NewWorkload(server, 1, 0, 0)
	require.NoError(t, server.Create(configMap("settings-1")))
	for range 20 {
		w.create()
	}
	assert.NotContains(t, w.names, "settings-1", "it belongs to the other client")
	require.NoError(t, server.Create(configMap(fmt.Sprintf("settings-%d", w.made+1))))
	before := w.made
	for _, name := range w.names {
		require.NoError(t, server.Delete(configMap(name)))
	}
	for range 500 {
		w.change()
	}
	assert.Greater(t, w.made, before+1)
	require.NotEmpty(t, w.names)
	for _, name := range w.names {
		assert.NoError(t, server.Get(configMap(name)))
	}
	require.NoError(t, server.Get(configMap("settings-1")))
}

// The examples of the help and of --serve use the first object, which the workload keeps.
func TestWorkload_KeepsTheFirstObject(t *testing.T) {
	server := apitest.NewServer(apitest.Options{})
	w := NewWorkload(server, 1, 0, 20)
	w.fill()
	for range 2000 {
		w.change()
	}
	assert.NoError(t, server.Get(configMap("settings-1")))
	assert.Error(t, server.Get(configMap("settings-2")), "others are deleted")
}

// The controller writes the object at the same time. A change from the page is not refused.
func TestWorkload_ChangeSurvivesAnotherWriter(t *testing.T) {
	server := apitest.NewServer(apitest.Options{})
	w := NewWorkload(server, 1, 0, 0)
	require.NoError(t, w.Create("default/a"))
	var writing sync.WaitGroup
	defer writing.Wait()
	done := make(chan struct{})
	defer close(done)
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				m := configMap("a")
				m.Data = map[string]string{"i": fmt.Sprint(i)}
				_ = server.Update(m)
			}
		}
	})
	for range 500 {
		require.NoError(t, w.Change("default/a"))
	}
	assert.Error(t, w.Change("default/none"))
}

// A world of another size takes the place of all objects, and gives it back.
func TestWorkload_ResetsAndRestores(t *testing.T) {
	server := apitest.NewServer(apitest.Options{})
	w := NewWorkload(server, 1, 2, 20)
	w.fill()
	mine := configMap("mine")
	mine.Data = map[string]string{"a": "b"}
	require.NoError(t, server.Create(mine))
	for range 50 {
		w.change()
	}
	content := func() map[string]any {
		all, err := server.List("configmaps", "")
		require.NoError(t, err)
		content := map[string]any{}
		for _, m := range all {
			content[m.GetName()] = []any{m.Object["data"], m.GetLabels()}
		}
		return content
	}
	before, names := content(), slices.Clone(w.names)
	restore, err := w.Reset(4)
	require.NoError(t, err)
	assert.Equal(t, []string{"settings-1", "settings-2", "settings-3", "settings-4"},
		slices.Sorted(maps.Keys(content())))
	assert.Zero(t, w.Rate())
	require.NoError(t, w.Set(0, 60))
	assert.Len(t, content(), 60)
	require.NoError(t, w.Delete("default/settings-1"))
	_, err = w.Reset(4) // of another lesson
	require.NoError(t, err)
	assert.Len(t, content(), 4)
	require.NoError(t, w.Create("default/more"))

	require.NoError(t, restore())
	assert.Equal(t, before, content())
	assert.Equal(t, 2.0, w.Rate())
	assert.Equal(t, 20, w.Objects())
	assert.Equal(t, names, w.names)
}
