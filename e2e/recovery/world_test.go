// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// patience bounds the wait for recovery. client-go may back off twice, for a minute each.
const patience = 4 * time.Minute

// setup is the size of a world.
type setup struct {
	kind            kind
	implementations []string
	namespaces      int           // each with a writer
	informers       int           // of each implementation in each namespace
	perClient       int           // informers that share a client; those of alone never do
	sick            []collection  // followed by other informers of each client, not of alone
	objects         int           // names that the writer of a namespace uses
	beatEvery       time.Duration // the time between two changes by a writer
	hurry           bool          // the next fault follows after 5 to 20 s, not after a minute
	tolerance       time.Duration // how long a law of the monitor may be broken
	apiServerArgs   []string
}

// world is one cluster with its writers, the informers under test, and their monitor.
type world struct {
	setup
	t        *testing.T
	cluster  *cluster.Cluster
	admin    kubernetes.Interface
	dynamic  dynamic.Interface // as the admin
	account  *account          // of the informers
	probe    rest.Interface    // with this account, without a link
	writers  []*writer
	links    []*fixture.Link
	requests map[string]*requests // by implementation
	subjects []*subject
	monitor  *monitor
}

func newWorld(t *testing.T, s setup) *world {
	w := &world{setup: s, t: t, requests: map[string]*requests{}}
	w.cluster = cluster.New(t, cluster.Options{APIServerArgs: s.apiServerArgs})
	config := w.cluster.Config(cluster.AdminToken)
	w.admin = kubernetes.NewForConfigOrDie(config)
	w.dynamic = dynamic.NewForConfigOrDie(config)
	w.kind.prepare(w)
	w.account = newAccount(w)
	w.grant()
	w.probe = w.kind.client(t, w.account.config())
	for range s.namespaces {
		w.writers = append(w.writers, w.startWriter(fixture.NewNamespace(t, w.admin)))
	}
	w.answers(isNil)
	for _, implementation := range s.implementations {
		w.startInformers(implementation)
	}
	w.monitor = startMonitor(t, w.tolerance, w.subjects)
	return w
}

// startInformers starts the informers of an implementation, with a client and a link for each
// program, and waits until they are synced.
func (w *world) startInformers(implementation string) {
	config := w.account.config()
	w.requests[implementation] = &requests{resource: w.kind.resource.Resource, host: config.Host}
	perClient, sick := w.perClient, w.sick
	if implementation == alone {
		perClient, sick = 1, nil
	}
	var p *process
	var started []*subject
	for _, writer := range w.writers {
		for range w.informers {
			if len(started)%perClient == 0 {
				l := fixture.NewLink()
				w.links = append(w.links, l)
				p = newProcess(w.t, implementation,
					w.requests[implementation].count(l.Config(config)))
				for i, from := range sick {
					p.startSick(w.t, i, from)
				}
			}
			started = append(started, p.start(w.t, len(started)+1, writer))
		}
	}
	require.Eventually(w.t, func() bool {
		return !slices.ContainsFunc(started, func(s *subject) bool { return !s.synced() })
	}, patience, sampleEvery)
	w.subjects = append(w.subjects, started...)
}

// pause is the time between the recovery from one fault and the next fault.
func (s setup) pause() time.Duration {
	if s.hurry {
		return 5*time.Second + rand.N(15*time.Second)
	}
	return time.Minute
}

// established is how long the informers have run when the first fault begins: for package outage a
// member that was answered less than 5 s ago is not yet well.
const established = 10 * time.Second

// endure runs the faults, each some time after the recovery from the previous one, and returns how
// long the informers took to recover from each, and what they requested.
func (w *world) endure(faults []fault) []row {
	var rows []row
	last := time.Now()
	for i, f := range faults {
		if i == 0 {
			w.wait(established)
		} else {
			w.wait(w.pause())
		}
		w.monitor.begin(f)
		begun := time.Now()
		answered := f.strike(w)
		w.monitor.end(answered)
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		took, complete := w.monitor.recoveries(ctx)
		cancel()
		require.True(w.t, complete, "an informer has not recovered from %q: %v", f.name, took)
		r := w.newRow(f, answered.Sub(begun))
		for implementation, requests := range w.requests {
			result := result{took: took[implementation]}
			result.during, _ = requests.between(begun, answered)
			result.after, _ = requests.between(answered, time.Now())
			_, result.sick = requests.between(last, time.Now())
			if f.fleet > 0 {
				result.peak = requests.peak(begun.Add(fleetWarm), begun.Add(f.fleet))
			}
			r.results[implementation] = result
		}
		last = time.Now()
		rows = append(rows, r)
		w.t.Log(r)
		for _, writer := range w.writers {
			w.nothingIsLost(f.name, writer)
		}
	}
	return rows
}

// newRow returns a row without results.
func (w *world) newRow(f fault, lasted time.Duration) row {
	r := row{fault: f.name, lasted: lasted, asks: f.asks, size: w.namespaces * w.informers,
		results: map[string]result{}}
	r.programs = r.size / w.perClient
	for _, from := range w.sick {
		if from.host == "" {
			r.refused += r.programs
		}
	}
	return r
}

// nothingIsLost compares the collection that etcd holds with the stores of its informers, and with
// what their handlers were notified of.
func (w *world) nothingIsLost(fault string, writer *writer) {
	writer.churn.Lock()
	defer writer.churn.Unlock()
	for _, s := range w.subjects {
		if s.writer != writer {
			continue
		}
		require.EventuallyWithT(w.t, func(t *assert.CollectT) {
			// read each time: the server may execute a write long after the writer gave it up
			want, err := w.cluster.Stored(w.t.Context(), w.kind.path+"/"+writer.namespace)
			require.NoError(t, err)
			delete(want, heartbeat)
			assert.NotEmpty(t, want)
			assert.Equal(t, want, s.collection(), "store of %s after %s", s.name, fault)
			notified, breaches := s.history.read()
			assert.Equal(t, want, notified, "handler of %s after %s", s.name, fault)
			assert.Empty(t, breaches, "handler of %s after %s", s.name, fault)
		}, patience, sampleEvery)
	}
}

// answers asks the server with the informers' account until it answers a LIST and a WATCH as
// expected, and returns the time of these requests. A server that starts answers some requests
// seconds before others, and its own cache may be old.
func (w *world) answers(expected func(error) bool) time.Time {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		at := time.Now()
		err := w.listIsCurrent()
		if err == nil {
			err = w.watchBegins()
		}
		if expected(err) {
			return at
		}
		require.False(w.t, at.After(deadline), "the server still answers: %v", err)
		w.wait(sampleEvery)
	}
}

// ask returns a request as those of the informers: from the cache.
func (w *world) ask() *rest.Request {
	return w.probe.Get().Namespace(w.writers[0].namespace).Resource(w.kind.resource.Resource).
		Param("resourceVersion", "0").MaxRetries(0)
}

// listIsCurrent lists, and fails if the server knows only an old heartbeat.
func (w *world) listIsCurrent() error {
	text, err := w.ask().Timeout(time.Second).DoRaw(w.t.Context())
	if err != nil {
		return err
	}
	var list unstructured.UnstructuredList
	if err := list.UnmarshalJSON(text); err != nil {
		return err
	}
	for i := range list.Items {
		if list.Items[i].GetName() != heartbeat {
			continue
		}
		n, err := beatOf(&list.Items[i])
		if lag := w.writers[0].timeline.lag(n, time.Now()); err == nil && lag >= recoveredLag {
			err = fmt.Errorf("the server's state is %v old", lag)
		}
		return err
	}
	return errors.New("the server has no heartbeat")
}

// watchBegins opens a watch and waits for its first event: the objects that exist come first.
func (w *world) watchBegins() error {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
	defer cancel()
	events, err := w.ask().Param("watch", "true").Stream(ctx)
	if err != nil {
		return err
	}
	_, err = events.Read(make([]byte, 1))
	return errors.Join(err, events.Close())
}

func (w *world) eachLink(do func(*fixture.Link)) {
	for _, l := range w.links {
		do(l)
	}
}

func (w *world) wait(d time.Duration) {
	w.t.Helper()
	require.True(w.t, wait(w.t.Context(), d), "the test was stopped")
}

// wait returns false if ctx ends before d has passed.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
