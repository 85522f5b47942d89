// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// withCandidate runs play with a LeaseCandidate that runs against an API server, ours or
// client-go's.
func withCandidate(
	t *testing.T,
	impls []string,
	play func(t *testing.T, s *apitest.Server, stop func()),
) {
	for _, impl := range impls {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := apitest.NewServer(
					apitest.Options{Scheme: scheme.Scheme, Resources: []apitest.Resource{{
						Group: "coordination.k8s.io", Version: "v1beta1", Kind: "LeaseCandidate",
						Plural: "leasecandidates", Namespaced: true,
					}}},
				)
				require.NoError(t, s.StartPipe())
				defer s.Close()
				client := kubernetes.NewForConfigOrDie(
					&rest.Config{Host: s.URL, Transport: s.Transport(), QPS: -1},
				)
				run := func() func(context.Context) {
					if impl != transcript.Ours {
						c, _, err := clientgo.NewCandidate(
							client,
							"kube-system",
							"a",
							"lease",
							"1.37.0",
							"1.36.0",
							coordinationv1.OldestEmulationVersion,
						)
						require.NoError(t, err)
						return c.Run
					}
					c, err := NewLeaseCandidate(LeaseCandidateConfig{
						Client: NewCandidateClient(
							client.CoordinationV1beta1().RESTClient(),
							"kube-system",
						), Namespace: "kube-system", Name: "a", LeaseName: "lease",
						BinaryVersion: "1.37.0", EmulationVersion: "1.36.0",
						Strategy: coordinationv1.OldestEmulationVersion,
					})
					require.NoError(t, err)
					return c.Run
				}()
				ctx, cancel := context.WithCancel(quiet())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					run(ctx)
				}()
				time.Sleep(time.Second)
				play(t, s, func() {
					cancel()
					<-ended
				})
				cancel()
				<-ended
			})
		})
	}
}

// client-go's typed client fits.
var _ CandidateClient = coordinationv1beta1client.LeaseCandidateInterface(nil)

var both = []string{transcript.Ours, "client-go"}

func candidateOn(t *testing.T, s *apitest.Server) *coordinationv1beta1.LeaseCandidate {
	c := &coordinationv1beta1.LeaseCandidate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "a"},
	}
	require.NoError(t, s.Get(c))
	return c
}

func ago(at *metav1.MicroTime) time.Duration { return time.Since(at.Time).Round(time.Second) }

func TestLeaseCandidate_StandsAndRenews(t *testing.T) {
	withCandidate(t, both, func(t *testing.T, s *apitest.Server, _ func()) {
		got := candidateOn(t, s)
		assert.Equal(t, time.Second, ago(got.Spec.RenewTime))
		got.Spec.RenewTime = nil
		assert.Equal(t, coordinationv1beta1.LeaseCandidateSpec{
			LeaseName: "lease", BinaryVersion: "1.37.0", EmulationVersion: "1.36.0",
			Strategy: coordinationv1.OldestEmulationVersion,
		}, got.Spec)
		time.Sleep(4 * time.Minute)
		assert.Equal(t, 4*time.Minute+time.Second, ago(candidateOn(t, s).Spec.RenewTime))
		time.Sleep(time.Minute)
		assert.Equal(t, time.Second, ago(candidateOn(t, s).Spec.RenewTime), "every five minutes")
	})
}

func TestLeaseCandidate_AnswersTheCoordinator(t *testing.T) {
	withCandidate(t, both, func(t *testing.T, s *apitest.Server, _ func()) {
		for range 3 {
			time.Sleep(time.Minute)
			c := candidateOn(t, s)
			c.Spec.PingTime = &metav1.MicroTime{Time: time.Now()}
			require.NoError(t, s.Update(c))
			time.Sleep(time.Second)
			assert.Equal(t, time.Second, ago(candidateOn(t, s).Spec.RenewTime))
		}
	})
}

// A coordinator that asks while a renewal reads the object is answered by that renewal.
func TestLeaseCandidate_AnswersDuringASlowRenewal(t *testing.T) {
	withCandidate(t, both, func(t *testing.T, s *apitest.Server, _ func()) {
		s.Faults().Add(apitest.Fault{
			Match: apitest.Match{Verb: "list", Resource: "leasecandidates"},
			Times: 1, Delay: 4 * time.Second,
		})
		time.Sleep(5*time.Minute + time.Second) // the renewal began two seconds ago
		c := candidateOn(t, s)
		c.Spec.PingTime = &metav1.MicroTime{Time: time.Now()}
		require.NoError(t, s.Update(c))
		time.Sleep(10 * time.Second)
		got := candidateOn(t, s).Spec
		assert.False(t, got.RenewTime.Before(got.PingTime), "%v, %v", got.RenewTime, got.PingTime)
	})
}

// A coordinator with a clock that is ahead is answered once. client-go compares the two clocks, and
// would keep renewing until its own has caught up.
func TestDifference_ACoordinatorsClockIsNotComparedWithOurs(t *testing.T) {
	withCandidate(t, []string{transcript.Ours}, func(t *testing.T, s *apitest.Server, _ func()) {
		c := candidateOn(t, s)
		c.Spec.PingTime = &metav1.MicroTime{Time: time.Now().Add(time.Minute)}
		s.ForgetRequests()
		require.NoError(t, s.Update(c))
		time.Sleep(time.Second)
		assert.Len(t, s.Requests(apitest.Match{Verb: "update"}), 1)
		assert.Equal(t, time.Second, ago(candidateOn(t, s).Spec.RenewTime))
	})
}

// The same with a coordinator with a clock that is behind: client-go does not answer it.
func TestDifference_ACoordinatorWhoseClockIsBehindIsAnswered(t *testing.T) {
	withCandidate(t, both, func(t *testing.T, s *apitest.Server, _ func()) {
		c := candidateOn(t, s)
		c.Spec.PingTime = &metav1.MicroTime{Time: time.Now().Add(-time.Minute)}
		require.NoError(t, s.Update(c))
		time.Sleep(time.Minute)
		answered := ago(candidateOn(t, s).Spec.RenewTime) == time.Minute
		assert.Equal(t, strings.HasSuffix(t.Name(), transcript.Ours), answered)
	})
}

// A LeaseCandidate that was deleted is created again at once; client-go's comes back with the
// next renewal.
func TestDifference_ADeletedLeaseCandidateComesBack(t *testing.T) {
	withCandidate(t, both, func(t *testing.T, s *apitest.Server, _ func()) {
		require.NoError(t, s.Delete(candidateOn(t, s)))
		time.Sleep(time.Second)
		c := &coordinationv1beta1.LeaseCandidate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "a"},
		}
		err := s.Get(c)
		assert.Equal(t, strings.HasSuffix(t.Name(), transcript.Ours), err == nil, "%v", err)
	})
}

// A LeaseCandidate with a fixed name finds the object of the binary before it: what the coordinator
// compares becomes its own. client-go renews the old version, for ever.
func TestDifference_ALeaseCandidateHasItsOwnVersion(t *testing.T) {
	withCandidate(t, both, func(t *testing.T, s *apitest.Server, stop func()) {
		old := candidateOn(t, s)
		want := old.Spec.DeepCopy()
		old.Spec.BinaryVersion, old.Spec.EmulationVersion = "1.35.0", "1.35.0"
		old.Spec.Strategy = "old.example.com/strategy"
		old.Spec.PingTime = &metav1.MicroTime{Time: time.Now().Add(time.Second)}
		old.Labels = map[string]string{"kept": "yes"}
		require.NoError(t, s.Update(old))
		time.Sleep(10 * time.Minute)
		got := candidateOn(t, s)
		assert.Equal(t, "yes", got.Labels["kept"])
		assert.LessOrEqual(t, ago(got.Spec.RenewTime), 5*time.Minute)
		if strings.HasSuffix(t.Name(), "client-go") {
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
	withCandidate(t, []string{transcript.Ours}, func(t *testing.T, s *apitest.Server, _ func()) {
		deletes := 0
		for range 1000 {
			c := &coordinationv1beta1.LeaseCandidate{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "a"},
			}
			if s.Get(c) == nil {
				require.NoError(t, s.Delete(c))
				deletes++
			}
			time.Sleep(10 * time.Millisecond)
		}
		assert.InDelta(t, 10, deletes, 2, "one a second")
	})
}

// The objects of other candidates are not touched, even by a client that returns all of them.
func TestLeaseCandidate_LeavesOthersAlone(t *testing.T) {
	client := fake.NewClientset(
		&coordinationv1beta1.LeaseCandidate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "0"},
		},
	)
	candidates := client.CoordinationV1beta1().LeaseCandidates("kube-system")
	c, err := NewLeaseCandidate(LeaseCandidateConfig{
		Client: candidates, Namespace: "kube-system", Name: "a", LeaseName: "lease",
		BinaryVersion: "1.37.0",
	})
	require.NoError(t, err)
	for range 2 { // makes it, and renews it
		written, err := c.renew(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "a", written.Name)
	}
	other, err := candidates.Get(t.Context(), "0", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Nil(t, other.Spec.RenewTime)
}

// A role that is enough for client-go's candidate is enough.
func TestLeaseCandidate_Verbs(t *testing.T) {
	withCandidate(t, both, func(t *testing.T, s *apitest.Server, _ func()) {
		time.Sleep(5 * time.Minute)
		for _, request := range s.Requests(apitest.Match{Resource: "leasecandidates"}) {
			assert.Contains(t, []string{"list", "watch", "create", "update"}, request.Verb)
		}
		assert.NotEmpty(t, s.Requests(apitest.Match{Verb: "update"}), "a renewal")
	})
}

// Failures have growing pauses, and are forgotten.
func TestLeaseCandidate_Failures(t *testing.T) {
	withCandidate(t, []string{transcript.Ours}, func(t *testing.T, s *apitest.Server, stop func()) {
		s.Faults().
			Fail(
				0, apitest.Match{Resource: "leasecandidates"},
				apierrors.NewForbidden(leases, "a", errors.New("no")),
			)
		s.Faults().Break(apitest.Match{}, apitest.CutStream)
		s.ForgetRequests()
		time.Sleep(10 * time.Minute)
		n := len(s.Requests(apitest.Match{}))
		assert.Greater(t, n, 10)
		assert.Less(t, n, 20)
		s.Faults().Clear()
		time.Sleep(2 * time.Minute)
		assert.Less(t, ago(candidateOn(t, s).Spec.RenewTime), 2*time.Minute)
		stop()
		assert.NoError(t, s.Get(candidateOn(t, s)), "it stays")
	})
}

// A success ends the growth of the pauses, however soon the next failure follows.
func TestLeaseCandidate_FailuresAreForgotten(t *testing.T) {
	withCandidate(t, []string{transcript.Ours}, func(t *testing.T, s *apitest.Server, _ func()) {
		match := apitest.Match{Resource: "leasecandidates"}
		refuse := func() {
			s.Faults().Fail(0, match, apierrors.NewForbidden(leases, "a", errors.New("no")))
			s.Faults().Break(apitest.Match{}, apitest.CutStream)
		}
		refuse()
		time.Sleep(10 * time.Minute)
		s.Faults().Clear()
		time.Sleep(20 * time.Second)
		require.Less(t, ago(candidateOn(t, s).Spec.RenewTime), 20*time.Second)
		require.NoError(t, s.Delete(candidateOn(t, s)))
		time.Sleep(2 * time.Second)
		refuse()
		s.ForgetRequests()
		time.Sleep(10 * time.Second)
		assert.Greater(t, len(s.Requests(match)), 2)
	})
}

// A wait that the server names has a bound of a minute, whatever the request.
func TestLeaseCandidate_RetryAfterIsBounded(t *testing.T) {
	ours := []string{transcript.Ours}
	for _, verb := range []string{"watch", "list", "update"} {
		withCandidate(t, ours, func(t *testing.T, s *apitest.Server, _ func()) {
			s.ForgetRequests()
			match := apitest.Match{Verb: verb, Resource: "leasecandidates"}
			s.Faults().Fail(0, match, apierrors.NewTooManyRequests("later", 3600))
			time.Sleep(25 * time.Minute)
			assert.GreaterOrEqual(t, len(s.Requests(match)), 15, verb)
			s.Faults().Clear()
			time.Sleep(2 * time.Minute)
			assert.Less(t, ago(candidateOn(t, s).Spec.RenewTime), 2*time.Minute, verb)
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
			client := &endedWatches{after: after, CandidateClient: fake.NewClientset().
				CoordinationV1beta1().LeaseCandidates("kube-system")}
			c, err := NewLeaseCandidate(LeaseCandidateConfig{
				Client: client, Namespace: "kube-system", Name: "a", LeaseName: "lease",
				BinaryVersion: "1.37.0",
			})
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
