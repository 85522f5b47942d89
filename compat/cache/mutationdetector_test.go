// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"example.com/informerstack/compat/cache"
)

const detectorSwitch = "KUBE_CACHE_MUTATION_DETECTOR"

func TestMutationDetector_FindsChanges(t *testing.T) {
	t.Setenv(detectorSwitch, "true")
	synctest.Test(t, func(t *testing.T) {
		d := cache.NewCacheMutationDetector("pods")
		shared := pod("a", 1)
		d.AddObject(shared)
		d.AddObject(cache.DeletedFinalStateUnknown{}) // not an object
		shared.Labels = map[string]string{"mine": "now"}
		require.PanicsWithValue(t, "cache pods modified", func() { d.Run(nil) })
	})
}

// An object is watched for at least two minutes and at most four.
func TestMutationDetector_LetsGo(t *testing.T) {
	t.Setenv(detectorSwitch, "true")
	synctest.Test(t, func(t *testing.T) {
		d := cache.NewCacheMutationDetector("pods")
		shared := pod("a", 1)
		d.AddObject(shared)
		stopCh := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Run(stopCh)
		}()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		shared.Labels = map[string]string{"mine": "now"}
		time.Sleep(time.Minute)
		close(stopCh)
		<-done
	})
}

func TestMutationDetector_IsOff(t *testing.T) {
	t.Setenv(detectorSwitch, "")
	d := cache.NewCacheMutationDetector("pods")
	shared := pod("a", 1)
	d.AddObject(shared)
	shared.Labels = map[string]string{"mine": "now"}
	d.Run(nil) // returns
}

// An informer passes every object that it stores to a detector, and otherwise behaves as without
// one.
func TestInformer_WithMutationDetector(t *testing.T) {
	t.Setenv(detectorSwitch, "true")
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "a")
		i := cache.NewSharedIndexInformer(source, &v1.Pod{}, 0, nil)
		var seen log
		_, err := i.AddEventHandler(seen.handler())
		require.NoError(t, err)
		defer run(i)()
		synctest.Wait()
		source.Add(pod("b", 0))
		source.Modify(pod("b", 0))
		source.Delete(pod("a", 0))
		time.Sleep(5 * time.Minute)
		require.Equal(
			t,
			[]string{"add a@1 initial=true", "add b@2 initial=false", "update b@3", "delete a@4"},
			seen.take(),
		)
		require.Equal(t, []string{"ns/b"}, i.GetIndexer().ListKeys())
	})
}

// Two factories run the same informer: the second run changes nothing, and the detector still
// watches the objects. It holds an object that is deleted for at least two minutes.
func TestInformer_SecondRunLeavesTheMutationDetectorOn(t *testing.T) {
	t.Setenv(detectorSwitch, "true")
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "a")
		i := cache.NewSharedIndexInformer(source, &v1.Pod{}, 0, nil)
		defer run(i)()
		synctest.Wait()
		stored, _, err := i.GetStore().GetByKey("ns/a")
		require.NoError(t, err)
		watched := weak.Make(stored.(*v1.Pod))
		i.RunWithContext(t.Context())
		source.Delete(pod("a", 0))
		source.Add(pod("b", 0))
		synctest.Wait()
		for range 3 {
			runtime.GC()
		}
		require.NotNil(t, watched.Value())
	})
}
