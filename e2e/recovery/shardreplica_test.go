// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
	"example.com/informerstack/shard"
	"example.com/informerstack/store"
)

// replicaVariable makes this program a replica of the group, with that configuration.
const replicaVariable = "RECOVERY_SHARD_REPLICA"

// replicaConfig configures a process of a group of replicas.
type replicaConfig struct {
	Name       string // of this process, and of no other
	Kubeconfig string
	Server     string // the address of the process's own link to the server
	Namespace  string
	Records    string // file
	Elect      bool   // one replica works, and all have all objects
	Quick      bool   // no reconcile takes long
}

// The group of the tests.
const (
	groupName     = "group"
	groupShards   = 64
	groupDuration = 8 * time.Second // of a Lease
	groupDeadline = 6 * time.Second
	groupRetry    = 500 * time.Millisecond
	groupDrain    = 3 * time.Second
	groupWorkers  = 8
)

// record is one call of reconcile. Between Begin and Valid the replica had the right to act, by its
// own clock: Valid was read before the last successful look at the token.
type record struct {
	Replica      string
	Shard        int
	UID          string // of the shard's Lease
	Transitions  int
	Key          string
	Version      uint64 // resourceVersion of the object that it saw
	Begin, Valid int64  // nanoseconds since 1970
	Done         bool   // it ended with the right to act
}

// usage is what a replica has used until now. It is written on SIGUSR1.
type usage struct {
	Heap      uint64        // bytes that live, after a garbage collection
	Processor time.Duration // user and system time
}

// replica is a process of the group.
type replica struct {
	replicaConfig
	objects *informer.Informer[*corev1.ConfigMap]

	mu  sync.Mutex
	out *os.File
}

// runReplica is the process: it works until SIGTERM.
func runReplica(text string) error {
	r := &replica{}
	err := json.Unmarshal([]byte(text), &r.replicaConfig)
	if err != nil {
		return err
	}
	r.out, err = os.OpenFile(r.Records, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the test is gone
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go r.reportUsage()
	config, err := clientcmd.BuildConfigFromFlags("", r.Kubeconfig)
	if err != nil {
		return err
	}
	config.Host, config.QPS = "https://"+r.Server, -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if r.Elect {
		return r.lead(ctx, config, client)
	}
	return r.share(ctx, config, client)
}

// share runs a replica that owns some of the shards.
func (r *replica) share(
	ctx context.Context, config *rest.Config, client kubernetes.Interface,
) error {
	clock := &skewedClock{}
	go clock.obey()
	config = rest.CopyConfig(config)
	config.ContentType = "application/json"
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		clock.inner = inner
		return clock
	})
	leases, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	shards, err := shard.New(shard.Config{
		Name: groupName, Namespace: r.Namespace, Client: leases.CoordinationV1().RESTClient(),
		Count: groupShards, Identity: r.Name, LeaseDuration: groupDuration,
		RenewDeadline: groupDeadline, RetryPeriod: groupRetry, DrainTimeout: groupDrain,
	})
	if err != nil {
		return err
	}
	r.objects = informer.New[*corev1.ConfigMap](client.CoreV1().RESTClient(), "configmaps",
		shards.Options(shard.ByUID, informer.Options{Namespace: r.Namespace}))
	guarded := shard.Reconcile(shards, shard.ValueIn(r.objects.GetIndexer(), shard.ByUID),
		func(ctx context.Context, key string) (controller.Result, error) {
			return r.reconcile(ctx, key, shard.FencingTokenFromContext)
		})
	ctrl := controller.New("replica", guarded,
		controller.Options[string]{Workers: groupWorkers, GracePeriod: groupDrain})
	var running sync.WaitGroup
	running.Go(func() { err = shards.Run(ctx) })
	running.Go(func() { r.reportIdle(ctx, shards, ctrl) })
	failed := r.work(ctx, ctrl)
	running.Wait()
	return errors.Join(err, failed)
}

// reportIdle writes a file whenever each shard that this process owns is active, and no key waits
// for a worker.
func (r *replica) reportIdle(
	ctx context.Context, shards *shard.Shards, ctrl *controller.Controller[string],
) {
	for ctx.Err() == nil {
		moves := slices.ContainsFunc(shards.Status().Shards, func(s shard.ShardStatus) bool {
			return s.State != shard.Active && s.State != shard.Elsewhere
		})
		if !moves && ctrl.Status().Queued == 0 {
			_ = os.WriteFile(idleFile(r.Records), nil, 0o600)
		}
		wait(ctx, 50*time.Millisecond)
	}
}

func idleFile(records string) string { return records + ".idle" }

// lead runs a replica that works only while it is the leader.
func (r *replica) lead(
	ctx context.Context, config *rest.Config, client kubernetes.Interface,
) error {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, r.Namespace,
		groupName, resourcelock.ResourceLockConfig{Identity: r.Name}, config, groupDeadline)
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: groupDuration, RenewDeadline: groupDeadline,
		RetryPeriod: groupRetry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	r.objects = informer.New[*corev1.ConfigMap](client.CoreV1().RESTClient(), "configmaps",
		informer.Options{Namespace: r.Namespace})
	return r.work(ctx, controller.New("replica",
		func(ctx context.Context, key string) (controller.Result, error) {
			return r.reconcile(ctx, key, leaderelection.FencingTokenFromContext)
		}, controller.Options[string]{
			Workers: groupWorkers, GracePeriod: groupDrain, Lead: elector.Lead,
			WaitFor: []controller.Synced{r.objects.HasSyncedChecker()},
		}))
}

// work runs the informer and the controller.
func (r *replica) work(ctx context.Context, ctrl *controller.Controller[string]) error {
	handler := ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc)
	if _, err := r.objects.AddEventHandler(handler); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { r.objects.Run(ctx) })
	return ctrl.Run(ctx)
}

// reconcile takes some time, and records during which part of it this process had the right to act.
func (r *replica) reconcile(
	ctx context.Context, key string,
	token func(context.Context) (leaderelection.FencingToken, bool),
) (controller.Result, error) {
	begin := time.Now()
	right, ok := token(ctx)
	obj, exists, err := r.objects.GetStore().GetByKey(key)
	if !ok || !exists || err != nil {
		return controller.Result{}, err
	}
	object := obj.(*corev1.ConfigMap)
	high, _ := bits.Mul64(shard.Hash(string(object.UID)), groupShards)
	done := record{
		Replica: r.Name, Key: key, Shard: int(high), UID: string(right.UID),
		Transitions: right.Transitions, Begin: begin.UnixNano(), Valid: begin.UnixNano(),
	}
	if _, err := fmt.Sscan(object.ResourceVersion, &done.Version); err != nil {
		return controller.Result{}, err
	}
	for end := begin.Add(r.duration()); ; {
		now := time.Now()
		if _, done.Done = token(ctx); !done.Done {
			break
		}
		if done.Valid = now.UnixNano(); !now.Before(end) {
			break
		}
		wait(ctx, min(end.Sub(now), 5*time.Millisecond))
	}
	if err := r.write(done); err != nil {
		return controller.Result{}, err
	}
	return controller.Result{}, ctx.Err()
}

// duration is how long a reconcile takes: one of a hundred takes long.
func (r *replica) duration() time.Duration {
	switch {
	case r.Quick:
		return 0
	case rand.IntN(100) == 0:
		return rand.N(time.Second)
	}
	return rand.N(4 * time.Millisecond)
}

// write appends a line to the file. It is there even if the process is killed afterwards.
func (r *replica) write(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.out.Write(append(text, '\n'))
	return err
}

// reportUsage writes the usage whenever the test asks for it.
func (r *replica) reportUsage() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	for range asked {
		var u usage
		var times syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &times) // cannot fail
		u.Processor = time.Duration(times.Utime.Nano() + times.Stime.Nano())
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		u.Heap = memory.HeapAlloc
		_ = r.write(u) // the test misses the line
	}
}
