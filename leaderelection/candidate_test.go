// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1beta1client "k8s.io/client-go/kubernetes/typed/coordination/v1beta1"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/leaderelection"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/transcript"
)

// HandleError sleeps by a clock that bubbles share with the world outside; the tests keep only its
// log.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// coordination is an API server with a LeaseCandidate named a, which runs.
type coordination struct {
	t    *testing.T
	impl string
	*apitest.Server
	stop func() // ends its run
}

var (
	ours = []string{transcript.Ours}
	both = []string{transcript.Ours, "client-go"}
)

// ofCandidates matches the candidate's requests.
var ofCandidates = apitest.Match{Resource: "leasecandidates"}

// candidateOf makes a LeaseCandidate, and returns its Run.
func candidateOf(t *testing.T, impl string, client kubernetes.Interface) func(context.Context) {
	if impl != transcript.Ours {
		c, _, err := clientgo.NewCandidate(client, "kube-system", "a", "lease", "1.37.0", "1.36.0",
			coordinationv1.OldestEmulationVersion)
		require.NoError(t, err)
		return c.Run
	}
	c, err := NewLeaseCandidate(LeaseCandidateConfig{
		Client:    NewCandidateClient(client.CoordinationV1beta1().RESTClient(), "kube-system"),
		Namespace: "kube-system", Name: "a", LeaseName: "lease",
		BinaryVersion: "1.37.0", EmulationVersion: "1.36.0",
		Strategy: coordinationv1.OldestEmulationVersion,
	})
	require.NoError(t, err)
	return c.Run
}

// coordinate runs play with each implementation's LeaseCandidate, which has run for a second.
func coordinate(t *testing.T, impls []string, play func(t *testing.T, c *coordination)) {
	for _, impl := range impls {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := apitest.NewServer(apitest.Options{
					Scheme: scheme.Scheme, Resources: []apitest.Resource{{
						Group: "coordination.k8s.io", Version: "v1beta1", Kind: "LeaseCandidate",
						Plural: "leasecandidates", Namespaced: true,
					}},
				})
				require.NoError(t, s.StartPipe())
				defer s.Close()
				run := candidateOf(t, impl, kubernetes.NewForConfigOrDie(
					&rest.Config{Host: s.URL, Transport: s.Transport(), QPS: -1}))
				ctx, cancel := context.WithCancel(quiet())
				var running sync.WaitGroup
				running.Go(func() { run(ctx) })
				c := &coordination{t: t, impl: impl, Server: s, stop: func() {
					cancel()
					running.Wait()
				}}
				defer c.stop()
				time.Sleep(time.Second)
				play(t, c)
			})
		})
	}
}

// client-go's typed client fits.
var _ CandidateClient = coordinationv1beta1client.LeaseCandidateInterface(nil)

// find returns the object, or nil if it does not exist.
func (c *coordination) find() *coordinationv1beta1.LeaseCandidate {
	object := &coordinationv1beta1.LeaseCandidate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "a"},
	}
	if c.Get(object) != nil {
		return nil
	}
	return object
}

func (c *coordination) object() *coordinationv1beta1.LeaseCandidate {
	object := c.find()
	require.NotNil(c.t, object)
	return object
}

// renewed returns how long ago the object was renewed.
func (c *coordination) renewed() time.Duration {
	return time.Since(c.object().Spec.RenewTime.Time).Round(time.Second)
}

// ping asks the candidate, as a coordinator does with a clock that is so far ahead.
func (c *coordination) ping(ahead time.Duration) {
	object := c.object()
	object.Spec.PingTime = &metav1.MicroTime{Time: time.Now().Add(ahead)}
	require.NoError(c.t, c.Update(object))
}

// refuse makes all requests fail.
func (c *coordination) refuse() {
	c.Faults().Fail(0, ofCandidates, apierrors.NewForbidden(leases, "a", errors.New("no")))
	c.Faults().Break(apitest.Match{}, apitest.CutStream)
	c.ForgetRequests()
}

func TestLeaseCandidate_StandsAndRenews(t *testing.T) {
	coordinate(t, both, func(t *testing.T, c *coordination) {
		assert.Equal(t, time.Second, c.renewed())
		got := c.object().Spec
		got.RenewTime = nil
		assert.Equal(t, coordinationv1beta1.LeaseCandidateSpec{
			LeaseName: "lease", BinaryVersion: "1.37.0", EmulationVersion: "1.36.0",
			Strategy: coordinationv1.OldestEmulationVersion,
		}, got)
		time.Sleep(4 * time.Minute)
		assert.Equal(t, 4*time.Minute+time.Second, c.renewed())
		time.Sleep(time.Minute)
		assert.Equal(t, time.Second, c.renewed(), "every five minutes")
		// A role that is enough for client-go's candidate is enough.
		for _, request := range c.Requests(ofCandidates) {
			assert.Contains(t, []string{"list", "watch", "create", "update"}, request.Verb)
		}
	})
}

func TestLeaseCandidate_AnswersTheCoordinator(t *testing.T) {
	coordinate(t, both, func(t *testing.T, c *coordination) {
		for range 3 {
			time.Sleep(time.Minute)
			c.ping(0)
			time.Sleep(time.Second)
			assert.Equal(t, time.Second, c.renewed())
		}
	})
}

// A coordinator that asks while a renewal reads the object is answered by that renewal.
func TestLeaseCandidate_AnswersDuringASlowRenewal(t *testing.T) {
	coordinate(t, both, func(t *testing.T, c *coordination) {
		c.Faults().Add(apitest.Fault{
			Match: apitest.Match{Verb: "list", Resource: "leasecandidates"},
			Times: 1, Delay: 4 * time.Second,
		})
		time.Sleep(5*time.Minute + time.Second) // the renewal began two seconds ago
		c.ping(0)
		time.Sleep(10 * time.Second)
		got := c.object().Spec
		assert.False(t, got.RenewTime.Before(got.PingTime), "%v, %v", got.RenewTime, got.PingTime)
	})
}

// A coordinator with a clock that is ahead is answered once. client-go compares the two clocks, and
// would keep renewing until its own has caught up.
func TestDifference_ACoordinatorsClockIsNotComparedWithOurs(t *testing.T) {
	coordinate(t, ours, func(t *testing.T, c *coordination) {
		c.ForgetRequests()
		c.ping(time.Minute)
		time.Sleep(time.Second)
		assert.Len(t, c.Requests(apitest.Match{Verb: "update"}), 1)
		assert.Equal(t, time.Second, c.renewed())
	})
}

// The same with a coordinator with a clock that is behind: client-go does not answer it.
func TestDifference_ACoordinatorWhoseClockIsBehindIsAnswered(t *testing.T) {
	coordinate(t, both, func(t *testing.T, c *coordination) {
		c.ping(-time.Minute)
		time.Sleep(time.Minute)
		assert.Equal(t, c.impl == transcript.Ours, c.renewed() == time.Minute)
	})
}

// A LeaseCandidate that was deleted is created again at once; client-go's comes back with the
// next renewal.
func TestDifference_ADeletedLeaseCandidateComesBack(t *testing.T) {
	coordinate(t, both, func(t *testing.T, c *coordination) {
		require.NoError(t, c.Delete(c.object()))
		time.Sleep(time.Second)
		assert.Equal(t, c.impl == transcript.Ours, c.find() != nil)
	})
}

// A LeaseCandidate with a fixed name finds the object of the binary before it: what the coordinator
// compares becomes its own. client-go renews the old version, for ever.
func TestDifference_ALeaseCandidateHasItsOwnVersion(t *testing.T) {
	coordinate(t, both, func(t *testing.T, c *coordination) {
		old := c.object()
		want := old.Spec.DeepCopy()
		old.Spec.BinaryVersion, old.Spec.EmulationVersion = "1.35.0", "1.35.0"
		old.Spec.Strategy = "old.example.com/strategy"
		old.Spec.PingTime = &metav1.MicroTime{Time: time.Now().Add(time.Second)}
		old.Labels = map[string]string{"kept": "yes"}
		require.NoError(t, c.Update(old))
		time.Sleep(10 * time.Minute)
		got := c.object()
		assert.Equal(t, "yes", got.Labels["kept"])
		assert.LessOrEqual(t, c.renewed(), 5*time.Minute)
		if c.impl != transcript.Ours {
			assert.Equal(t, "1.35.0", got.Spec.BinaryVersion)
			return
		}
		assert.NotNil(t, got.Spec.PingTime)
		got.Spec.RenewTime, got.Spec.PingTime, want.RenewTime = nil, nil, nil
		assert.Equal(t, want, &got.Spec)
	})
}

// Another client deletes the object whenever it sees it.
func TestLeaseCandidate_DeletedAgainAndAgain(t *testing.T) {
	coordinate(t, ours, func(t *testing.T, c *coordination) {
		deletes := 0
		for range 1000 {
			if object := c.find(); object != nil {
				require.NoError(t, c.Delete(object))
				deletes++
			}
			time.Sleep(10 * time.Millisecond)
		}
		assert.InDelta(t, 10, deletes, 2, "one a second")
	})
}

// onFake is the config of a LeaseCandidate on client-go's fake clientset.
func onFake(objects ...runtime.Object) LeaseCandidateConfig {
	return LeaseCandidateConfig{
		Client: fake.NewClientset(objects...).CoordinationV1beta1().
			LeaseCandidates("kube-system"),
		Namespace: "kube-system", Name: "a", LeaseName: "lease", BinaryVersion: "1.37.0",
	}
}

// The objects of other candidates are not touched, even by a client that returns all of them.
func TestLeaseCandidate_LeavesOthersAlone(t *testing.T) {
	config := onFake(&coordinationv1beta1.LeaseCandidate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "0"},
	})
	c, err := NewLeaseCandidate(config)
	require.NoError(t, err)
	for range 2 { // makes it, and renews it
		written, err := c.renew(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "a", written.Name)
	}
	others, err := config.Client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Equal(t, "0", others.Items[0].Name)
	assert.Nil(t, others.Items[0].Spec.RenewTime)
}

// Failures have growing pauses. A success ends the growth, however soon the next failure follows.
func TestLeaseCandidate_Failures(t *testing.T) {
	coordinate(t, ours, func(t *testing.T, c *coordination) {
		c.refuse()
		time.Sleep(10 * time.Minute)
		n := len(c.Requests(apitest.Match{}))
		assert.Greater(t, n, 10)
		assert.Less(t, n, 20)
		c.Faults().Clear()
		time.Sleep(20 * time.Second)
		require.Less(t, c.renewed(), 20*time.Second)
		require.NoError(t, c.Delete(c.object()))
		time.Sleep(2 * time.Second)
		c.refuse()
		time.Sleep(10 * time.Second)
		assert.Greater(t, len(c.Requests(ofCandidates)), 2)
		c.stop()
		assert.NotNil(t, c.find(), "it stays")
	})
}

// A wait that the server names has a bound of a minute, whatever the request.
func TestLeaseCandidate_RetryAfterIsBounded(t *testing.T) {
	for _, verb := range []string{"watch", "list", "update"} {
		coordinate(t, ours, func(t *testing.T, c *coordination) {
			c.ForgetRequests()
			match := apitest.Match{Verb: verb, Resource: "leasecandidates"}
			c.Faults().Fail(0, match, apierrors.NewTooManyRequests("later", 3600))
			time.Sleep(25 * time.Minute)
			assert.GreaterOrEqual(t, len(c.Requests(match)), 15, verb)
			c.Faults().Clear()
			time.Sleep(2 * time.Minute)
			assert.Less(t, c.renewed(), 2*time.Minute, verb)
		})
	}
}

// endedWatches is a client. Its watches end after a time. It counts the renewals.
type endedWatches struct {
	CandidateClient
	after    time.Duration
	renewals int
}

func (c *endedWatches) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFake()
	time.AfterFunc(c.after, w.Stop)
	return w, nil
}

func (c *endedWatches) Update(ctx context.Context, o *coordinationv1beta1.LeaseCandidate,
	opts metav1.UpdateOptions) (*coordinationv1beta1.LeaseCandidate, error) {
	c.renewals++
	return c.CandidateClient.Update(ctx, o, opts)
}

// A server that ends watches early is not written to each second.
func TestLeaseCandidate_WatchesThatEnd(t *testing.T) {
	for after, most := range map[time.Duration]int{0: 70, 10 * time.Second: 70, time.Minute: 60} {
		synctest.Test(t, func(t *testing.T) {
			config := onFake()
			client := &endedWatches{after: after, CandidateClient: config.Client}
			config.Client = client
			c, err := NewLeaseCandidate(config)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(quiet(), time.Hour)
			defer cancel()
			c.Run(ctx)
			assert.LessOrEqual(t, client.renewals, most, after)
			assert.Greater(t, client.renewals, 50, after)
			time.Sleep(time.Minute) // the last watch ends
		})
	}
}

func TestAsks(t *testing.T) {
	at := func(second int64) *coordinationv1beta1.LeaseCandidate {
		c := &coordinationv1beta1.LeaseCandidate{}
		if second > 0 {
			c.Spec.PingTime = &metav1.MicroTime{Time: time.Unix(second, 0)}
		}
		return c
	}
	assert.False(t, asks(at(0), at(0)))
	assert.False(t, asks(at(0), at(1)), "an event that is older than the renewal")
	assert.True(t, asks(at(1), at(0)))
	assert.False(t, asks(at(1), at(1)))
	assert.True(t, asks(at(2), at(1)))
}

func TestNewLeaseCandidate_BadInput(t *testing.T) {
	_, err := NewLeaseCandidate(LeaseCandidateConfig{})
	assert.EqualError(t, err, "make lease candidate: Client is nil")
	config := LeaseCandidateConfig{
		Client:   NewCandidateClient(&rest.RESTClient{}, "ns"),
		Strategy: coordinationv1.OldestEmulationVersion,
	}
	for _, field := range []struct {
		name  string
		value *string
	}{
		{"Namespace", &config.Namespace}, {"Name", &config.Name}, {"LeaseName", &config.LeaseName},
		{"BinaryVersion", &config.BinaryVersion}, {"EmulationVersion", &config.EmulationVersion},
	} {
		_, err = NewLeaseCandidate(config)
		assert.EqualError(t, err, "make lease candidate: "+field.name+" is empty")
		*field.value = "1.37.0"
	}
	_, err = NewLeaseCandidate(config)
	assert.NoError(t, err)
	config.EmulationVersion, config.Strategy = "", ""
	_, err = NewLeaseCandidate(config)
	assert.NoError(t, err, "no other strategy asks for it")
}
