// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	reference "k8s.io/client-go/tools/leaderelection"

	"example.com/informerstack/compat/leaderelection"
)

// metric records its calls.
type metric struct {
	mu    sync.Mutex
	calls []string
}

func (m *metric) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, what)
}

func (m *metric) On(name string)                { m.note("on " + name) }
func (m *metric) Off(name string)               { m.note("off " + name) }
func (m *metric) SlowpathExercised(name string) { m.note("slow " + name) }

func (m *metric) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls = nil
	return calls
}

type ourProvider struct{ *metric }

func (p ourProvider) NewLeaderMetric() leaderelection.LeaderMetric { return p.metric }

type clientGosProvider struct{ *metric }

func (p clientGosProvider) NewLeaderMetric() reference.LeaderMetric { return p.metric }

// Providers are global, so these metrics are too: the test may run several times.
var (
	first, second metric
	provided      bool
)

// One test covers the providers, which are global. client-go does not always report that it has
// stopped leading.
func TestDifference_AStoppedLeadersMetricIsOff(t *testing.T) {
	each(t, func(t *testing.T, impl string, p *program) {
		p.elector(impl)
		if !provided {
			assert.Empty(t, first.take(), "SetProvider has not been called yet")
		}
		provided = true
		leaderelection.SetProvider(ourProvider{&first})
		leaderelection.SetProvider(ourProvider{&second})
		reference.SetProvider(clientGosProvider{&first})
		reference.SetProvider(clientGosProvider{&second})

		refused := false
		p.client.(*fake.Clientset).PrependReactor("update", "leases",
			func(clienttesting.Action) (bool, runtime.Object, error) {
				if refused || time.Since(p.start) < 3*time.Second {
					return false, nil, nil
				}
				refused = true
				return true, nil, apierrors.NewInternalError(assert.AnError)
			})
		first.take()
		e := p.elector(impl)
		assert.Equal(t, []string{"off lock"}, first.take())
		ctx, cancel := context.WithTimeout(quiet(), 9*time.Second)
		defer cancel()
		e.Run(ctx)
		calls := first.take()
		if impl == ours {
			assert.Equal(t, []string{"on lock", "slow lock", "off lock"}, calls)
		} else {
			assert.Equal(t, []string{"on lock", "slow lock"}, calls,
				"it stays a leader, because it was stopped between two renewals")
		}
		assert.Empty(t, second.take(), "only the first call counts")
	})
}
