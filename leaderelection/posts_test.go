// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/leaderelection/resourcelock"
)

var fiveKinds = []string{
	resourcelock.EndpointsResourceLock, resourcelock.ConfigMapsResourceLock,
	resourcelock.LeasesResourceLock,
	resourcelock.EndpointsLeasesResourceLock, resourcelock.ConfigMapsLeasesResourceLock,
}

// program is a process that elects over an API server, as the post writes it.
type program struct {
	*world
	s *apitest.Server
}

// onServer runs a test with an API server and programs. The bubble's rest clients have no
// connection left when it ends.
func onServer(t *testing.T, play func(p *program)) {
	synctest.Test(t, func(t *testing.T) {
		s := apitest.NewServer(apitest.Options{})
		require.NoError(t, s.StartPipe())
		defer s.Close()
		p := &program{world: &world{t: t, start: time.Now(), narrate: narrate.New(t)}, s: s}
		play(p)
	})
}

func (p *program) config() *rest.Config {
	return &rest.Config{
		Host: p.s.URL, Transport: p.s.Transport(), QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
}

// lock is a lock of a process. Its requests pass through each of the transports.
func (p *program) lock(
	kind, id string, through ...func(http.RoundTripper) http.RoundTripper,
) resourcelock.Interface {
	config := p.config()
	for _, wrap := range through {
		config.Wrap(wrap)
	}
	lock, err := resourcelock.NewFromKubeconfig(kind, "kube-system", "lock",
		resourcelock.ResourceLockConfig{Identity: id, EventRecorder: p}, config, 10*time.Second)
	require.NoError(p.t, err)
	return lock
}

// Eventf makes the program an EventRecorder.
func (p *program) Eventf(obj runtime.Object, _, reason, message string, args ...any) {
	p.say("event on a %s: %s: %s", obj.GetObjectKind().GroupVersionKind().Kind, reason,
		fmt.Sprintf(message, args...))
}

// runOrDie starts a program, and returns what kills it.
func (p *program) runOrDie(id, kind string) (kill func()) {
	ctx, cancel := context.WithCancel(quiet())
	var ended sync.WaitGroup
	ended.Go(func() {
		RunOrDie(ctx, LeaderElectionConfig{
			Lock: p.lock(kind, id), LeaseDuration: 60 * time.Second,
			RenewDeadline: 15 * time.Second, RetryPeriod: 5 * time.Second,
			Callbacks: LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					p.say("%s runs", id)
					<-ctx.Done()
				},
				OnStoppedLeading: func() { p.say("leader lost: %s", id) },
				OnNewLeader: func(identity string) {
					if identity != id {
						p.say("%s: new leader elected: %s", id, identity)
					}
				},
			},
		})
	})
	synctest.Wait()
	return func() {
		cancel()
		ended.Wait()
	}
}

func (p *program) log() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.world.log
	p.world.log = nil
	slices.Sort(log)
	return log
}

// The post from its beginning to its end, with each of its locks: the first creates the lock and is
// the leader; it refreshes the lock; the other compares, waits, and takes over when the lease is
// over.
func TestPost_OneLeaderAndItsFollower(t *testing.T) {
	for _, kind := range fiveKinds {
		t.Run(kind, func(t *testing.T) {
			onServer(t, func(p *program) {
				killOne := p.runOrDie("one", kind)
				time.Sleep(time.Second)
				killTwo := p.runOrDie("two", kind)
				first := p.log()
				assert.Contains(t, first, "0s one runs")
				assert.Contains(t, first, "1s two: new leader elected: one")

				p.s.ForgetRequests()
				time.Sleep(time.Minute)
				assert.Empty(t, p.log(), "one renews, two waits")
				updates := len(p.s.Requests(apitest.Match{Verb: "update"}))
				objects := 1
				if kind == bothKind || kind == resourcelock.ConfigMapsLeasesResourceLock {
					objects = 2
				}
				assert.GreaterOrEqual(t, updates, 12*objects, "every 4.5 to 5 s")
				assert.LessOrEqual(t, updates, 14*objects, "and no other candidate writes")

				killed := time.Since(p.start)
				killOne()
				time.Sleep(80 * time.Second)
				log := p.log()
				assert.Contains(t, log, fmt.Sprintf("%v leader lost: one", killed))
				assert.True(t, slices.ContainsFunc(log, func(line string) bool {
					at, what := cut(line)
					return what == "two runs" && at >= killed+50*time.Second
				}), "two runs after a lease: %v", log)
				killTwo()
				p.log()
			})
		})
	}
}

// cut splits a line of the log.
func cut(line string) (at time.Duration, what string) {
	before, what, _ := strings.Cut(line, " ")
	at, _ = time.ParseDuration(before)
	return at, what
}

// With two objects the first is written first, and only if that succeeded, the second.
func TestPost_MultiLockWritesThePrimaryFirst(t *testing.T) {
	onServer(t, func(p *program) {
		kill := p.runOrDie("one", bothKind)
		time.Sleep(6 * time.Second)
		var got []string
		for _, r := range p.s.Requests(apitest.Match{}) {
			got = append(got, r.Verb+" "+r.Resource)
		}
		assert.Equal(t, []string{
			"get endpoints", "get leases", "create endpoints", "create leases",
			"update endpoints", "update leases",
		}, got)
		kill()
		p.log()
	})
}

// Several take the lease at the same moment: the server takes the first write, and answers the
// others with a conflict.
func TestPost_ResourceVersionDecides(t *testing.T) {
	onServer(t, func(p *program) {
		p.runOrDie("gone", newKind)()
		var kills []func()
		for i := range 5 {
			kills = append(kills,
				p.runOrDie(fmt.Sprintf("p%d", i), newKind))
		}
		p.log()
		p.s.ForgetRequests()
		time.Sleep(3 * time.Minute)
		started := 0
		for _, line := range p.log() {
			if strings.HasSuffix(line, " runs") {
				started++
			}
		}
		assert.Equal(t, 1, started)
		for _, kill := range kills {
			kill()
		}
	})
}

// A cluster moves from the old lock to the new one, a process at a time, in the order that the
// two-lock kinds are made for: old to both, both to new. There is one leader at every moment,
// though old and new ones never look at the same object.
func TestPost_MigrationFromEndpointsToLeases(t *testing.T) {
	for _, old := range []string{
		resourcelock.EndpointsResourceLock, resourcelock.ConfigMapsResourceLock,
	} {
		t.Run(old, func(t *testing.T) {
			migrate(t, func(m *migration) {
				var running [3]*member
				for i := range running {
					running[i] = m.start(fmt.Sprintf("%d/0", i), old, 15)
				}
				for generation, kind := range []string{old + "leases", newKind} {
					for i := range running { // one after the other
						time.Sleep(time.Minute)
						running[i].stop()
						synctest.Wait()
						running[i] = m.start(fmt.Sprintf("%d/%d", i, generation+1), kind, 15)
					}
				}
				time.Sleep(2 * time.Minute)
				m.leads("*")
			})
		})
	}
}

// Renewals that fail end the term; the program runs RunOrDie again, and is a candidate once more.
func TestPost_RunOrDieAgain(t *testing.T) {
	onServer(t, func(p *program) {
		kill := p.runOrDie("one", newKind)
		time.Sleep(time.Second)
		heal := p.s.Faults().Fail(0, apitest.Match{}, apierrors.NewInternalError(assert.AnError))
		time.Sleep(30 * time.Second)
		assert.Contains(t, p.log(), "20s leader lost: one")
		heal()
		kill()
		kill = p.runOrDie("one", newKind)
		assert.Contains(t, p.log(), "31s one runs", "its own lease it need not wait for")
		kill()
		p.log()
	})
}
