// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"
)

// back returns how long a reader needs after an outage of four minutes, in which the server answers
// nothing but 503.
func back(t *testing.T, start func(ctx context.Context, lw ListerWatcher)) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var open *watch.FakeWatcher
		away, unavailable := false, apierrors.NewServiceUnavailable("away")
		lw := ToListWatcherWithWatchListSemantics(&ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				mu.Lock()
				defer mu.Unlock()
				if away {
					return nil, unavailable
				}
				return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
			},
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
				mu.Lock()
				defer mu.Unlock()
				if away {
					return nil, unavailable
				}
				open = watch.NewFakeWithChanSize(1, false)
				return open, nil
			},
		}, refuser{})
		ctx, cancel := context.WithCancel(t.Context())
		start(ctx, lw)
		time.Sleep(5 * time.Minute)
		mu.Lock()
		away = true
		open.Stop()
		mu.Unlock()
		time.Sleep(4*time.Minute + 30*time.Second)
		mu.Lock()
		away, open = false, nil
		mu.Unlock()
		for began := time.Now(); took == 0; time.Sleep(100 * time.Millisecond) {
			mu.Lock()
			if open != nil {
				took = max(time.Since(began), 1)
			}
			mu.Unlock()
			require.Less(t, time.Since(began), 5*time.Minute)
		}
		cancel()
		synctest.Wait()
	})
	return took
}

type refuser struct{}

func (refuser) IsWatchListSemanticsUnSupported() bool { return true }

// With INFORMERSTACK_OUTAGE=group, informers and reflectors are current soon after an outage.
// Without it they wait as client-go's.
func TestOutageVariable(t *testing.T) {
	run := map[string]func(ctx context.Context, lw ListerWatcher){
		"informer": func(ctx context.Context, lw ListerWatcher) {
			go NewSharedIndexInformer(lw, &v1.Pod{}, 0, nil).RunWithContext(ctx)
		},
		"controller": func(ctx context.Context, lw ListerWatcher) {
			_, c := NewInformerWithOptions(InformerOptions{
				ListerWatcher: lw, ObjectType: &v1.Pod{}, Handler: ResourceEventHandlerFuncs{},
			})
			go c.RunWithContext(ctx)
		},
		"reflector": func(ctx context.Context, lw ListerWatcher) {
			go NewReflector(lw, &v1.Pod{}, NewStore(MetaNamespaceKeyFunc), 0).RunWithContext(ctx)
		},
		"client-go": func(ctx context.Context, lw ListerWatcher) {
			go clientgo.NewReflector(lw, &v1.Pod{}, clientgo.NewStore(MetaNamespaceKeyFunc), 0).
				RunWithContext(ctx)
		},
	}
	slowest := func(name string) (slowest time.Duration) {
		for range 10 {
			slowest = max(slowest, back(t, run[name]))
		}
		return slowest
	}
	for name := range run {
		t.Setenv(outageVariable, "")
		assert.Greater(t, slowest(name), 10*time.Second, name)
		t.Setenv(outageVariable, "group")
		if name != "client-go" {
			assert.LessOrEqual(t, slowest(name), 7*time.Second, name)
		}
	}
}
