// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// settled is how long a namespace must be readable, or forbidden, until the store must show it.
const settled = 3 * time.Minute

// model applies random steps to a world, and remembers when the state of each namespace changed.
type model struct {
	*world
	random *rand.Rand
	since  map[string]time.Time // when the state of a namespace changed last
	seed   uint64
}

// Namespaces come and go, fail, hang and lose their roles, while objects change, watches break and
// the store refuses changes. In two of three runs, the whole cluster is watched now and then.
// Claims and notifications are checked after every step, content after quiet times.
func TestModel_Namespaces(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			var options []func(*Options)
			if seed%2 == 0 {
				options = append(options, tolerant)
			}
			if seed%3 > 0 {
				options = append(options, clusterAbove(int(seed%3)))
			}
			story(t, func(w *world) {
				m := &model{w, rand.New(rand.NewPCG(seed, 2)), map[string]time.Time{}, seed}
				for _, namespace := range []string{"a", "b", "c"} {
					m.change(namespace, func() { w.add(namespace) })
				}
				w.start()
				for range 150 {
					m.step()
					if m.random.IntN(3) > 0 {
						w.settle()
					}
				}
				m.finish()
			}, options...)
		})
	}
}

// change notes that step changes the state of a namespace.
func (m *model) change(namespace string, step func()) {
	m.since[namespace] = time.Now()
	step()
}

func (m *model) step() {
	namespace := string(rune('a' + m.random.IntN(5)))
	key := fmt.Sprintf("%s/%d", namespace, m.random.IntN(4))
	kinds := 20
	if m.set.cluster != nil {
		kinds = 24
	}
	switch n := m.random.IntN(kinds); n {
	case 0, 1:
		m.change(namespace, func() { m.add(namespace) })
	case 2, 3:
		m.change(namespace, func() { m.remove(namespace) })
	case 4:
		m.change(namespace, func() { m.server.fail(namespace, errForbidden) })
	case 5:
		m.change(namespace, func() { m.server.fail(namespace, errSick) })
	case 6:
		m.change(namespace, func() { m.server.hang(namespace) })
	case 7, 8, 9:
		m.change(namespace, func() { m.server.heal(namespace) })
	case 10:
		m.change(namespace, func() { m.server.cut(namespace, m.random.IntN(2) == 0) })
	case 11:
		m.server.bookmark()
	case 12:
		m.change(namespace, func() { m.store.refuse(namespace, 1+m.random.IntN(2)) })
	case 13:
		m.after(time.Duration(m.random.IntN(100)) * time.Second)
		m.checkContent()
	case 14:
		m.await(namespace)
	case 15:
		m.server.delete(key)
	case 20, 21, 22:
		m.troubleCluster()
	case 23:
		m.after(time.Duration(m.random.IntN(10)) * time.Second)
	default:
		m.server.put(key)
	}
}

// troubleCluster changes what the watch of the whole cluster does. It may be silent for some time.
func (m *model) troubleCluster() {
	for namespace := range m.since {
		m.since[namespace] = time.Now()
	}
	all := metav1.NamespaceAll
	switch m.random.IntN(8) {
	case 0:
		m.server.fail(all, errForbidden)
	case 1:
		m.server.fail(all, errSick)
	case 2:
		m.server.hang(all)
	case 3, 4:
		m.server.cut(all, m.random.IntN(2) == 0)
	default:
		m.server.heal(all)
	}
}

// await waits for the present version, and checks the claim if the wait succeeds.
func (m *model) await(namespace string) {
	m.t.Helper()
	m.server.mu.Lock()
	version := max(m.server.rv, 1)
	m.server.mu.Unlock()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
	defer cancel()
	upTo := func(e entry) bool { return e.rv <= version }
	if m.set.WaitForResourceVersionIn(ctx, namespace, strconv.Itoa(version)) == nil {
		m.checkHeld(namespace, upTo)
	}
	if m.informer.WaitForResourceVersion(ctx, strconv.Itoa(version)) == nil {
		for _, s := range m.set.Namespaces() {
			if !s.LeftOut {
				m.checkHeld(s.Namespace, upTo)
			}
		}
	}
}

// checkContent checks N1 and N2 for each namespace in the same state for long enough.
func (m *model) checkContent() {
	m.t.Helper()
	for namespace, since := range m.since {
		if time.Since(since) < settled {
			continue
		}
		_, isPresent := m.twin[namespace]
		m.server.mu.Lock()
		space := m.server.spaceLocked(namespace)
		isReadable := space.failure == nil && space.hanging == nil
		isForbidden := space.failure == errForbidden && space.hanging == nil
		m.server.mu.Unlock()
		switch {
		case !m.informer.HasSynced():
		case !isPresent, isForbidden && m.set.options.Tolerate != nil:
			require.Empty(m.t, m.storedIn(namespace), namespace)
		case isReadable:
			want := m.server.content(namespace)
			slices.Sort(want)
			require.Equal(m.t, want, m.storedIn(namespace), namespace)
			require.NoError(m.t, m.set.find(namespace).err())
		case space.hanging == nil:
			require.Error(m.t, m.set.find(namespace).err(), namespace)
		}
	}
}

func (m *model) storedIn(namespace string) (all []string) {
	for _, object := range m.stored() {
		if strings.HasPrefix(object, namespace+"/") {
			all = append(all, object)
		}
	}
	return all
}

// finish heals everything: then the store equals the server, and everything is current.
func (m *model) finish() {
	m.store.refuse("", 0)
	m.server.heal(metav1.NamespaceAll)
	for namespace := range m.since {
		m.server.heal(namespace)
	}
	m.after(2 * settled)
	m.checkContent()
	m.server.bookmark()
	m.after(5 * time.Second)
	m.holds()
	synctest.Wait()
	assert.True(m.t, m.informer.HasSynced())
	assert.NoError(m.t, m.informer.Err())
	h := m.informer.Health()
	assert.NoError(m.t, h.Fresh(time.Now(), time.Minute))
	if len(m.twin) > 0 {
		assert.Equal(m.t, strconv.Itoa(m.server.rv), h.ResourceVersion)
	}
	version := strconv.Itoa(m.server.rv)
	assert.NoError(m.t, m.informer.WaitForResourceVersion(m.t.Context(), version))
}
