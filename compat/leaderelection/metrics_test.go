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

// metric remembers what it was told.
type metric struct {
	mu   sync.Mutex
	told []string
}

func (m *metric) tell(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, what)
}

func (m *metric) On(name string)                { m.tell("on " + name) }
func (m *metric) Off(name string)               { m.tell("off " + name) }
func (m *metric) SlowpathExercised(name string) { m.tell("slow " + name) }

func (m *metric) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := m.told
	m.told = nil
	return told
}

type ourProvider struct{ *metric }

func (p ourProvider) NewLeaderMetric() leaderelection.LeaderMetric { return p.metric }

type clientGosProvider struct{ *metric }

func (p clientGosProvider) NewLeaderMetric() reference.LeaderMetric { return p.metric }

// The providers are the process's, and so are these metrics, however often the test runs.
var (
	first, second metric
	provided      bool
)

// All there is to say of providers is said by one test. client-go does not always say that it has
// stopped leading.
func TestDifference_AStoppedLeadersMetricIsOff(t *testing.T) {
	each(t, func(t *testing.T, impl string, p *program) {
		p.elector(impl)
		if !provided {
			assert.Empty(t, first.take(), "nobody has called SetProvider yet")
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
		told := first.take()
		if impl == ours {
			assert.Equal(t, []string{"on lock", "slow lock", "off lock"}, told)
		} else {
			assert.Equal(t, []string{"on lock", "slow lock"}, told,
				"a leader for ever, for it was stopped between two renewals")
		}
		assert.Empty(t, second.take(), "only the first call counts")
	})
}
