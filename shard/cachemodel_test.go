// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/apitest"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// byLabel may change for an object.
var byLabel = ByFunc(func(obj metav1.Object) string { return obj.GetLabels()["part"] })

// Random changes of objects and of the ownership, with and without faults. After each step, every
// change of the stored shards up to the informer's version is in the store. At the end, store and
// handlers have exactly the owned objects, each in its last state. Every second store is
// compressed.
func TestModel_RandomOwnership(t *testing.T) {
	count := int(*seeds) * 2 / 3
	if testing.Short() {
		count = 5
	}
	for name, by := range map[string]By{
		"uid": ByUID, "namespace": ByNamespace, "owner": ByOwner(), "label": byLabel,
	} {
		for _, o := range cacheVariants(by) {
			for _, faults := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/faults=%v", name, o.name, faults), func(t *testing.T) {
					for seed := range count {
						model(t, o, uint64(seed), faults)
						if t.Failed() {
							t.Fatalf("seed %d", seed)
						}
					}
				})
			}
		}
	}
}

func model(t *testing.T, o cacheOptions, seed uint64, faults bool) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		if seed%2 == 1 {
			o.options.Form = compact.Compressed()
		}
		var slow atomic.Bool
		if o.inOrder && random.IntN(2) == 0 { // a DeltaFIFO is locked while the store works
			o.options.WrapIndexer = func(i store.Indexer) store.Indexer {
				return slowIndexer{i, i.(store.TransactionStore), &slow}
			}
		}
		m := &randomWorld{cacheWorld: newCacheWorld(t, o), random: random, faults: faults}
		defer m.close()
		if m.random.IntN(2) == 0 {
			m.handler.slow.Store(int64(10 * time.Millisecond))
		}
		for range m.random.IntN(60) {
			m.write()
		}
		if m.random.IntN(2) == 0 {
			m.reassign()
		}
		m.start()
		slow.Store(true) // a bubble cannot wait for a mutex, which HasSynced takes
		for range 60 {
			m.step()
		}
		m.server.Faults().Clear()
		m.handler.slow.Store(0)
		m.settled(11 * time.Minute) // a stalled watch lasts for at most ten, and its watchdog
	})
}

type randomWorld struct {
	*cacheWorld
	random *rand.Rand
	faults bool
}

// slowIndexer is a store that takes its time for each write, so that changes wait in the queue.
type slowIndexer struct {
	store.Indexer
	transactions store.TransactionStore
	slow         *atomic.Bool
}

func (s slowIndexer) wait(writes int) {
	if s.slow.Load() {
		time.Sleep(time.Duration(writes) * 50 * time.Millisecond)
	}
}

func (s slowIndexer) Add(obj any) error {
	s.wait(1)
	return s.Indexer.Add(obj)
}

func (s slowIndexer) Update(obj any) error {
	s.wait(1)
	return s.Indexer.Update(obj)
}

func (s slowIndexer) Delete(obj any) error {
	s.wait(1)
	return s.Indexer.Delete(obj)
}

func (s slowIndexer) Replace(list []any, resourceVersion string) error {
	s.wait(6)
	return s.Indexer.Replace(list, resourceVersion)
}

func (s slowIndexer) Transaction(txns ...store.Transaction) *store.TransactionError {
	s.wait(len(txns))
	return s.transactions.Transaction(txns...)
}

func (m *randomWorld) step() {
	switch n := m.random.IntN(20); {
	case n < 10:
		for range 1 + m.random.IntN(3) {
			m.write()
		}
	case n < 14:
		m.reassign()
	case n < 16 && m.faults:
		m.fault()
	case n < 17:
		m.after(time.Duration(m.random.IntN(70)) * time.Second)
	default:
		m.after(time.Duration(m.random.IntN(1500)) * time.Millisecond)
	}
	m.check()
}

func (m *randomWorld) key() string {
	i := m.random.IntN(30)
	return fmt.Sprintf("ns-%d/m-%d", i%5*1000003, i)
}

// write changes a random object. A key that is created again is in another shard by its uid, and
// maybe by its label.
func (m *randomWorld) write() {
	key := m.key()
	label := map[string]string{"part": fmt.Sprint(m.random.IntN(20) * 1000003)}
	writes := m.history[key]
	switch {
	case len(writes) == 0 || writes[len(writes)-1].object == nil:
		obj := configMap(key)
		obj.Labels = label
		require.NoError(m.t, m.server.Create(obj))
		m.wrote(key, "create", obj)
	case m.random.IntN(3) == 0:
		m.delete(key)
	default:
		m.updateWith(key, func(c *corev1.ConfigMap) {
			if m.random.IntN(2) == 0 {
				c.Labels = label
			}
		})
	}
}

// reassign adds and removes some shards, or changes all.
func (m *randomWorld) reassign() {
	owned := m.shards.caches.owned.Clone()
	switch m.random.IntN(8) {
	case 0:
		owned = allShards(m.shards.config.Count)
	case 1:
		owned = sets.New[Shard]()
	default:
		for range 1 + m.random.IntN(4) {
			shard := Shard(m.random.IntN(m.shards.config.Count))
			if m.random.IntN(2) == 0 {
				owned.Insert(shard)
			} else {
				owned.Delete(shard)
			}
		}
	}
	m.event("manager", "own %v", sets.List(owned))
	m.shards.caches.assign(owned)
}

func (m *randomWorld) fault() {
	faults := m.server.Faults()
	maps := apitest.Match{Resource: "configmaps"}
	times := 1 + m.random.IntN(3)
	switch m.random.IntN(12) {
	case 9, 10, 11:
		m.event("server", "late lists")
		m.lateLists(times, 2*time.Second)
		if m.random.IntN(2) == 0 {
			m.reassign()
		}
		m.after(time.Duration(m.random.IntN(1500)) * time.Millisecond)
		for range 5 {
			m.write()
		}
	case 0, 1:
		kind := apitest.StreamFault(1 + m.random.IntN(4))
		m.event("server", "%v", kind)
		faults.Break(maps, kind)
	case 2:
		m.event("server", "compact")
		faults.Compact()
	case 3:
		m.event("server", "fail lists")
		maps.Verb = "list"
		faults.Fail(times, maps, apierrors.NewTooManyRequests("busy", 0))
	case 4:
		maps.Verb = "watch"
		m.event("server", "fail watches")
		faults.Fail(times, maps, apierrors.NewInternalError(errors.New("fault")))
	case 5:
		m.event("server", "drop requests")
		faults.Add(apitest.Fault{Match: maps, Times: times, Drop: true})
	case 6:
		m.event("server", "slow lists")
		maps.Verb = "list"
		faults.Add(apitest.Fault{Match: maps, Times: times, Delay: 3 * time.Second})
	case 7:
		m.event("server", "cut lists")
		maps.Verb = "list"
		faults.Add(apitest.Fault{Match: maps, Times: times, Handler: http.HandlerFunc(cutList)})
	case 8:
		catchUp := faults.Lag()
		m.event("server", "lag")
		m.after(time.Duration(m.random.IntN(5000)) * time.Millisecond)
		catchUp()
		m.event("server", "catch up")
	}
}

// cutList answers with the beginning of a list.
func cutList(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{` +
		`"resourceVersion":"9"},"items":[`))
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}
