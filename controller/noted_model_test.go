// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/controller"
)

// podServer is a naive server of pods and a cache that sees each change after lag. As a client, it
// takes a random time for the way to the server and back.
type podServer struct {
	t     *testing.T
	lag   time.Duration
	loses bool // some answers

	mu      sync.Mutex
	rand    *rand.Rand
	version int
	pods    map[string]*corev1.Pod // by name
	cache   map[string]*corev1.Pod
	sending map[string]int       // by UID
	ended   map[string]time.Time // by UID, when the last write ended

	conflicts int
	surprises int // changes that no noted client knew at the time of a Conflict
	writes    int // changes
}

func newPodServer(t *testing.T, seed uint64, lag time.Duration) *podServer {
	return &podServer{t: t, lag: lag, rand: rand.New(rand.NewPCG(seed, 1)),
		pods: map[string]*corev1.Pod{}, cache: map[string]*corev1.Pod{}, sending: map[string]int{},
		ended: map[string]time.Time{}}
}

func (s *podServer) intN(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *podServer) travel() { time.Sleep(time.Duration(s.intN(50)) * time.Millisecond) }

// cached returns a copy of the pod in the cache, or nil.
func (s *podServer) cached(name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod := s.cache[name]; pod != nil {
		return pod.DeepCopy()
	}
	return nil
}

// storeLocked makes pod the next version of name; nil deletes it.
func (s *podServer) storeLocked(name string, pod *corev1.Pod) {
	s.version++
	s.writes++
	if pod == nil || pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0 {
		delete(s.pods, name)
	} else {
		pod.ResourceVersion = strconv.Itoa(s.version)
		s.pods[name] = pod.DeepCopy()
	}
	seen := s.pods[name]
	time.AfterFunc(s.lag, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.cache, name); seen != nil {
			s.cache[name] = seen
		}
	})
}

// refuse counts a Conflict, but not of a dry run.
func (s *podServer) refuse(name string, dryRun []string) error {
	if len(dryRun) == 0 {
		s.conflicts++
	}
	return apierrors.NewConflict(podResource, name, errors.New("it has changed"))
}

// write does change on the way through the server, for the pod with this UID, if it is not "".
func (s *podServer) write(
	name string, uid types.UID, dryRun []string, change func(now *corev1.Pod) (*corev1.Pod, error),
) (answer *corev1.Pod, err error) {
	s.mu.Lock()
	s.sending[string(uid)]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sending[string(uid)]--
		s.ended[string(uid)] = time.Now()
	}()
	s.travel()
	defer s.travel()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.pods[name]
	if now == nil {
		return nil, apierrors.NewNotFound(podResource, name)
	}
	if answer, err = change(now.DeepCopy()); err != nil {
		return nil, err
	}
	if len(dryRun) > 0 {
		answer.ResourceVersion = strconv.Itoa(s.version + 1000)
		return answer, nil
	}
	s.storeLocked(name, answer)
	if s.loses && s.rand.IntN(10) == 0 {
		s.surprises++
		return nil, errors.New("connection reset after the write")
	}
	return answer, nil
}

func (s *podServer) Create(
	_ context.Context, pod *corev1.Pod, _ metav1.CreateOptions,
) (*corev1.Pod, error) {
	s.travel()
	defer s.travel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[pod.Name] != nil {
		return nil, apierrors.NewAlreadyExists(podResource, pod.Name)
	}
	made := pod.DeepCopy()
	made.UID = types.UID(fmt.Sprintf("uid-%d", s.version))
	s.storeLocked(pod.Name, made)
	return made, nil
}

func (s *podServer) Update(
	_ context.Context, pod *corev1.Pod, opts metav1.UpdateOptions,
) (*corev1.Pod, error) {
	return s.write(pod.Name, pod.UID, opts.DryRun, func(now *corev1.Pod) (*corev1.Pod, error) {
		if now.UID != pod.UID || now.ResourceVersion != pod.ResourceVersion {
			return nil, s.refuse(pod.Name, opts.DryRun)
		}
		return pod.DeepCopy(), nil
	})
}

func (s *podServer) UpdateStatus(
	ctx context.Context, pod *corev1.Pod, opts metav1.UpdateOptions,
) (*corev1.Pod, error) {
	return s.Update(ctx, pod, opts)
}

// Patch sets the label of data. It sometimes has a conflict with another manager of fields.
func (s *podServer) Patch(
	_ context.Context, name string, _ types.PatchType, data []byte, opts metav1.PatchOptions,
	_ ...string,
) (*corev1.Pod, error) {
	return s.write(name, "", opts.DryRun, func(now *corev1.Pod) (*corev1.Pod, error) {
		if s.rand.IntN(5) == 0 {
			return nil, apierrors.NewApplyConflict([]metav1.StatusCause{
				{Type: metav1.CauseTypeFieldManagerConflict}}, "another manager")
		}
		s.surprises++ // an update that is under way may find it
		now.Labels = map[string]string{"patched": string(data)}
		return now, nil
	})
}

func (s *podServer) Delete(_ context.Context, name string, opts metav1.DeleteOptions) error {
	_, err := s.write(name, *opts.Preconditions.UID, opts.DryRun,
		func(now *corev1.Pod) (*corev1.Pod, error) {
			if now.UID != *opts.Preconditions.UID {
				return nil, apierrors.NewConflict(podResource, name, errors.New("another UID"))
			}
			s.surprises++ // as with Patch
			if now.DeletionTimestamp == nil {
				now.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			return now, nil
		})
	return err
}

// isOld reports whether the server has a newer state than pod.
func (s *podServer) isOld(pod *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.pods[pod.Name]
	return now == nil || now.UID != pod.UID || now.ResourceVersion != pod.ResourceVersion
}

// wasBusy reports whether a write of pod was being sent at a time, or since then.
func (s *podServer) wasBusy(pod *corev1.Pod, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, uid := range []string{string(pod.UID), ""} { // a patch has no UID
		if s.sending[uid] > 0 || !s.ended[uid].Before(at) {
			return true
		}
	}
	return false
}

// writer writes random pods for a while, and checks that a write that is not sent would be refused.
func (s *podServer) writer(writes *controller.Writes[string], key string, patches bool) {
	n := controller.Note(writes, key, controller.Writer[*corev1.Pod](s))
	ctx := context.Background()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); s.travel() {
		name := fmt.Sprint("pod-", s.intN(3))
		pod := s.cached(name)
		if pod == nil {
			pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, Finalizers: []string{"example.com/one"}}}
			if s.intN(2) == 0 {
				pod.Finalizers = nil
			}
			_, err := n.Create(ctx, pod, metav1.CreateOptions{})
			assert.NotErrorIs(s.t, err, controller.ErrStale)
			continue
		}
		s.travel() // a slow reconcile
		if writes.Stale(pod) {
			require.True(s.t, s.isOld(pod), "Stale of a copy that is the newest")
		}
		var dryRun []string
		if s.intN(5) == 0 {
			dryRun = []string{metav1.DryRunAll}
		}
		var err error
		began := time.Now()
		switch kind := s.intN(8); {
		case kind == 0 && patches:
			err = n.Delete(ctx, pod, metav1.DeleteOptions{DryRun: dryRun})
		case kind < 3 && patches:
			_, err = n.Patch(ctx, pod, types.ApplyPatchType, []byte(key),
				metav1.PatchOptions{DryRun: dryRun})
		case kind < 5:
			pod.Finalizers = nil
			_, err = n.UpdateStatus(ctx, pod, metav1.UpdateOptions{DryRun: dryRun})
		default:
			_, err = n.Update(ctx, pod, metav1.UpdateOptions{DryRun: dryRun})
		}
		if dryRun != nil {
			assert.NotErrorIs(s.t, err, controller.ErrStale)
		} else if errors.Is(err, controller.ErrStale) && !apierrors.IsConflict(err) {
			time.Sleep(time.Nanosecond) // the other writers reach the server
			require.True(s.t, s.wasBusy(pod, began) || s.isOld(pod),
				"%v: nothing has changed", err)
		}
	}
}

// Several writers of one process write the same pods, and the cache lags. Writes that the server
// can only refuse are not sent, all others are: W2 to W6 hold.
func TestModel_NotedWritersOfOneProcess(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			s := newPodServer(t, seed, time.Duration(seed)*25*time.Millisecond)
			patches := seed%3 == 2
			s.loses = seed%3 > 0
			var writes controller.Writes[string]
			var writers sync.WaitGroup
			for i := range 4 {
				writers.Go(func() { s.writer(&writes, fmt.Sprint(i), patches) })
			}
			writers.Wait()
			time.Sleep(time.Minute)
			assert.Greater(t, s.writes, 15, "seed %d", seed)
			assert.LessOrEqual(t, s.conflicts, s.surprises, "seed %d", seed)
			for i := range 3 {
				if pod := s.cached(fmt.Sprint("pod-", i)); pod != nil {
					assert.False(t, writes.Stale(pod), "seed %d", seed)
				}
			}
			t.Logf("seed %d: %d writes, %d conflicts, %d surprises",
				seed, s.writes, s.conflicts, s.surprises)
		})
	}
}

// Two controllers of one process write the same pods. With a Writes each, one learns from a
// Conflict what the other has written. With one Writes for both, there is no Conflict.
func TestStory_TwoControllersNeverConflict(t *testing.T) {
	for patient, wantConflicts := range map[bool]bool{true: false, false: true} {
		synctest.Test(t, func(t *testing.T) {
			s := newPodServer(t, 1, time.Second)
			var shared controller.Writes[string]
			ctx, cancel := context.WithCancel(quiet())
			var ended sync.WaitGroup
			for i := range 2 {
				writes := &shared
				if !patient {
					writes = &controller.Writes[string]{}
				}
				mine := fmt.Sprint("controller-", i)
				c := controller.New(mine, controller.Patient(time.Second, func(
					ctx context.Context, name string,
				) (controller.Result, error) {
					pod := s.cached(name)
					if pod.Labels[mine] == "10" {
						return controller.Result{}, nil
					}
					if pod.Labels == nil {
						pod.Labels = map[string]string{}
					}
					count, _ := strconv.Atoi(pod.Labels[mine])
					pod.Labels[mine] = strconv.Itoa(count + 1)
					n := controller.Note(writes, name, controller.Writer[*corev1.Pod](s))
					if _, err := n.Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
						return controller.Result{}, err
					}
					return controller.Result{RequeueAfter: time.Second}, nil
				}), controller.Options[string]{Workers: 4})
				ended.Go(func() { assert.NoError(t, c.Run(ctx)) })
				for i := range 5 {
					name := fmt.Sprint("pod-", i)
					_, _ = s.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
						Namespace: "ns", Name: name}}, metav1.CreateOptions{})
					time.Sleep(time.Second)
					c.Enqueue(name)
				}
			}
			time.Sleep(5 * time.Minute)
			for i := range 5 {
				pod := s.cached(fmt.Sprint("pod-", i))
				assert.Equal(t, map[string]string{"controller-0": "10", "controller-1": "10"},
					pod.Labels)
			}
			cancel()
			ended.Wait()
			assert.Equal(t, wantConflicts, s.conflicts > 0, "%d conflicts", s.conflicts)
			t.Logf("one Writes: %v: %d conflicts", patient, s.conflicts)
		})
	}
}
