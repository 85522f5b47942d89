// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// A kind that is defined, established, unserved, deleted and created again at random, and a server
// that fails at random for it, for the definitions, or for both: no request is made while the kind
// is known to be gone, the informer claims nothing that is wrong, and once the server is well, the
// store and the handler's view are what the server has.
func TestModel_FollowsTheKind(t *testing.T) {
	for seed := range uint64(24) {
		policy := Optional
		if seed%2 == 1 {
			policy = Required
		}
		t.Run(fmt.Sprintf("seed=%d/%s", seed, policy), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			options := informer.Options{InOrder: random.IntN(2) == 0}
			if random.IntN(3) == 0 {
				options.Reflector.UseWatchList = new(false)
			}
			m := &model{random: random, visible: map[string]time.Time{},
				hidden: map[string]time.Time{}}
			options.WrapListerWatcher = m.observe
			o := worldOptions{policy: policy, form: random.IntN(len(forms)), options: options}
			inBubble(t, o, m.run)
		})
	}
}

// model is the naive twin of a world: which objects a client sees, and since when.
type model struct {
	*world
	random          *rand.Rand
	exists          bool // the definition
	objects         []string
	visible, hidden map[string]time.Time
}

func (m *model) run(w *world) {
	m.world, w.isFaulty = w, true
	if m.random.IntN(2) == 0 {
		m.changeKind()
	}
	w.start()
	for range 200 {
		m.step()
		w.after(time.Duration(m.random.IntN(4000)) * time.Millisecond)
		m.checkClaims()
	}
	w.server.Faults().Clear()
	w.after(15 * time.Minute) // a watch may be stalled, and a wait long
	w.isFaulty = false
	w.server.ForgetRequests()
	w.settle()
	w.isRight()
	m.checkClaims()
	for range 20 { // without faults, everything is right within seconds
		m.changeKind()
		m.changeObject()
		w.after(5 * time.Second)
		w.isRight()
	}
}

func (m *model) step() {
	kinds := apitest.Match{Resource: "customresourcedefinitions"}
	match := []apitest.Match{kinds, ofWebsites, {}}[m.random.IntN(3)]
	failure := []apitest.StreamFault{apitest.CloseStream, apitest.CutStream, apitest.StallStream,
		apitest.ErrorStream}[m.random.IntN(4)]
	switch n := m.random.IntN(20); {
	case n < 3:
		m.changeKind()
	case n == 3:
		m.server.Faults().Break(match, failure)
	case n == 4:
		m.server.Faults().Fail(1+m.random.IntN(3), match, apierrors.NewServiceUnavailable("down"))
	case n == 5:
		m.server.Faults().Fail(1+m.random.IntN(2), match,
			apierrors.NewForbidden(websites.GroupResource(), "", nil))
	case n == 6:
		m.server.Faults().Compact()
	default:
		m.changeObject()
	}
}

// changeKind changes the definition.
func (m *model) changeKind() {
	served := "v1"
	if m.random.IntN(3) == 0 {
		served = "-v1"
	}
	switch {
	case !m.exists:
		m.exists = true
		m.define(true, served)
	case m.random.IntN(2) == 0:
		m.exists = false
		for _, name := range m.objects {
			m.hide(name)
		}
		m.objects = nil
		m.undefine()
	default:
		m.define(true, served)
	}
	for _, name := range m.objects {
		if m.isServed {
			m.show(name)
		} else {
			m.hide(name)
		}
	}
}

func (m *model) changeObject() {
	if !m.isServed {
		return
	}
	i := m.random.IntN(len(m.objects) + 1)
	switch {
	case i == len(m.objects) && i < 8:
		name := fmt.Sprint("a", m.random.IntN(1e9))
		m.objects = append(m.objects, name)
		m.create(name)
		m.show(name)
	case i == len(m.objects):
	case m.random.IntN(2) == 0:
		m.update(m.objects[i])
	default:
		name := m.objects[i]
		m.objects = append(m.objects[:i], m.objects[i+1:]...)
		m.delete(name)
		m.hide(name)
	}
}

func (m *model) show(name string) {
	delete(m.hidden, name)
	if _, is := m.visible[name]; !is {
		m.visible[name] = time.Now()
	}
}

func (m *model) hide(name string) {
	delete(m.visible, name)
	if _, is := m.hidden[name]; !is {
		m.hidden[name] = time.Now()
	}
}

// checkClaims compares the store with what CurrentAsOf says about it.
func (m *model) checkClaims() {
	m.t.Helper()
	asOf := m.informer.Health().CurrentAsOf
	stored := map[string]bool{}
	for _, key := range m.informer.GetStore().ListKeys() {
		stored[strings.TrimPrefix(key, "default/")] = true
	}
	for name, since := range m.visible {
		assert.False(m.t, since.Before(asOf) && !stored[name], "%s is missing, current as of %v",
			name, asOf)
	}
	for name, since := range m.hidden {
		assert.False(m.t, since.Before(asOf) && stored[name], "%s is there, current as of %v", name,
			asOf)
	}
}

// observe checks L1 at each request.
func (m *model) observe(
	_ context.Context, lw reflector.ListerWatcher, _ runtime.Object,
) reflector.ListerWatcher {
	return observed{lw, func(verb string) {
		for _, s := range m.kinds.Status() {
			assert.False(m.t, s.Phase.isGone() && time.Since(s.Since) > 0, "%s while %+v", verb, s)
		}
	}}
}

// observed calls check before each request.
type observed struct {
	reflector.ListerWatcher
	check func(verb string)
}

func (o observed) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	o.check("LIST")
	return o.ListerWatcher.(reflector.StreamLister).ListStream(ctx, options, each)
}

func (o observed) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	o.check("WATCH")
	return o.ListerWatcher.WatchWithContext(ctx, options)
}
