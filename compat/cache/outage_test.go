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

// awayServer answers nothing but 503 for some time after the first LIST and WATCH.
type awayServer struct {
	mu   sync.Mutex
	away bool
	open *watch.FakeWatcher
}

func (s *awayServer) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away = away; away {
		s.open.Stop()
	}
}

func (s *awayServer) List(metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, apierrors.NewServiceUnavailable("away")
	}
	return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
}

func (s *awayServer) Watch(metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, apierrors.NewServiceUnavailable("away")
	}
	s.open = watch.NewFakeWithChanSize(1, false)
	return s.open, nil
}

func (s *awayServer) IsWatchListSemanticsUnSupported() bool { return true }

// back returns how long a reader needs after an outage of four minutes.
func back(t *testing.T, start func(ctx context.Context, s *awayServer)) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &awayServer{}
		start(ctx, s)
		time.Sleep(5 * time.Minute)
		s.set(true)
		time.Sleep(4*time.Minute + 30*time.Second)
		s.mu.Lock()
		s.away, s.open = false, nil
		s.mu.Unlock()
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			s.mu.Lock()
			open := s.open != nil
			s.mu.Unlock()
			if open {
				took = time.Since(began)
				break
			}
			require.Less(t, time.Since(began), 5*time.Minute)
		}
		cancel()
		synctest.Wait()
	})
	return took
}

// With INFORMERSTACK_OUTAGE=group, informers and reflectors are current soon after an outage.
// Without it they wait as client-go's.
func TestOutageVariable(t *testing.T) {
	run := map[string]func(ctx context.Context, s *awayServer){
		"informer": func(ctx context.Context, s *awayServer) {
			go NewSharedIndexInformer(s, &v1.Pod{}, 0, nil).RunWithContext(ctx)
		},
		"controller": func(ctx context.Context, s *awayServer) {
			_, c := NewInformerWithOptions(InformerOptions{
				ListerWatcher: s, ObjectType: &v1.Pod{}, Handler: ResourceEventHandlerFuncs{},
			})
			go c.RunWithContext(ctx)
		},
		"reflector": func(ctx context.Context, s *awayServer) {
			go NewReflector(s, &v1.Pod{}, NewStore(MetaNamespaceKeyFunc), 0).RunWithContext(ctx)
		},
		"client-go": func(ctx context.Context, s *awayServer) {
			go clientgo.NewReflector(s, &v1.Pod{}, clientgo.NewStore(MetaNamespaceKeyFunc), 0).
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
