// SPDX-License-Identifier: Apache-2.0

package configmaps

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
)

// Another client deletes the workload's objects and takes its names. The workload continues.
func TestWorkload_ToleratesAnotherClient(t *testing.T) {
	server := apitest.NewServer(apitest.Options{})
	w := &Workload{server: server, random: rand.New(rand.NewPCG(1, 0))}
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
	w := &Workload{server: server, random: rand.New(rand.NewPCG(1, 0)), objects: 20}
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
	w := &Workload{server: server, random: rand.New(rand.NewPCG(1, 0))}
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
