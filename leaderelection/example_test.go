// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
)

// cluster starts an API server. A real program reads a kubeconfig instead.
func cluster() (*rest.Config, func()) {
	server := apitest.NewServer(apitest.Options{})
	if err := server.Start(); err != nil {
		panic(err)
	}
	return &rest.Config{
		Host:          server.URL,
		Transport:     server.Transport(),
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}, server.Close
}

func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }

// A program that works only while it is the leader.
func ExampleRunOrDie() {
	config, stop := cluster()
	defer stop()
	ctx, cancel := context.WithCancel(quiet())
	id := "host-1_3f1c" // a host's name and something that no other process has

	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, "kube-system",
		"my-controller", resourcelock.ResourceLockConfig{Identity: id}, config, 15*time.Second)
	if err != nil {
		panic(err)
	}
	newLeader := make(chan string, 1)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: 60 * time.Second, // others wait that long for a sign of life
		// the leader gives up when it could not give one for that long
		RenewDeadline:   15 * time.Second,
		RetryPeriod:     5 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				fmt.Println("leading")
				cancel() // a signal, say
				<-ctx.Done()
				fmt.Println("work wound up")
			},
			OnStoppedLeading: func() {
				fmt.Println("leader lost:", id) // here many programs exit
			},
			OnNewLeader: func(identity string) { newLeader <- identity },
		},
	})
	fmt.Println("new leader elected:", <-newLeader)
	// Output:
	// leading
	// work wound up
	// leader lost: host-1_3f1c
	// new leader elected: host-1_3f1c
}

// member returns the configuration of a process that takes part in the elections of foos.
func member(api *rest.Config, id string) leaderelection.LeaderElectionConfig {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, "kube-system",
		"foos", resourcelock.ResourceLockConfig{Identity: id}, api, 10*time.Second)
	if err != nil {
		panic(err)
	}
	return leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
		RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	}
}

// Work that was asked to stop may still write.
func ExampleTermContext() {
	api, stop := cluster()
	defer stop()
	ctx, cancel := context.WithCancel(quiet())
	config := member(api, "host-1_3f1c")
	config.Callbacks.OnStartedLeading = func(ctx context.Context) {
		cancel() // a signal, say
		<-ctx.Done()
		lasting := leaderelection.TermContext(ctx)
		fmt.Println("asked to stop:", ctx.Err(), "- may write:", lasting.Err() == nil)
	}
	leaderelection.RunOrDie(ctx, config)
	// Output:
	// asked to stop: context canceled - may write: true
}

// The workers of a controller run while the process leads. Lead does not call OnStartedLeading.
func ExampleLeaderElector_Lead() {
	api, stop := cluster()
	defer stop()
	ctx, cancel := context.WithCancel(quiet())
	config := member(api, "host-1_3f1c")
	config.Rejoin = true
	elector, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		panic(err)
	}
	reconcile := func(ctx context.Context, key string) (controller.Result, error) {
		fmt.Println("leads:", elector.IsLeader(), "- reconciles", key)
		cancel()
		return controller.Result{}, nil
	}
	c := controller.New("foos", reconcile, controller.Options[string]{Lead: elector.Lead})
	c.Queue().Add("default/a")
	fmt.Println(c.Run(ctx))
	// Output:
	// leads: true - reconciles default/a
	// <nil>
}

// All kinds of locks are used in the same way. They differ in what they keep the record on.
func ExampleLeaderElector_Run() {
	config, stop := cluster()
	defer stop()
	for _, kind := range []string{
		resourcelock.EndpointsResourceLock, resourcelock.ConfigMapsResourceLock,
		resourcelock.LeasesResourceLock,
		resourcelock.EndpointsLeasesResourceLock, resourcelock.ConfigMapsLeasesResourceLock,
	} {
		lock, err := resourcelock.NewFromKubeconfig(kind, "kube-system", "by-"+kind,
			resourcelock.ResourceLockConfig{Identity: "me"}, config, 10*time.Second)
		if err != nil {
			panic(err)
		}
		ctx, cancel := context.WithCancel(quiet())
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
			RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { cancel() },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			panic(err)
		}
		elector.Run(ctx)
		record, _, err := lock.Get(quiet())
		if err != nil {
			panic(err)
		}
		fmt.Println(kind, "lock held by", record.HolderIdentity)
	}
	// Output:
	// endpoints lock held by me
	// configmaps lock held by me
	// leases lock held by me
	// endpointsleases lock held by me
	// configmapsleases lock held by me
}

const tokenAnnotation = "example.com/fencing-token"

// save writes data into a ConfigMap that only leaders write. A leader that was paused may be one no
// longer without knowing. Its write is refused here if a later one has left its token in the
// object, and by the server if a later one writes between the read and the update: the version that
// was read is an old one then.
func save(ctx context.Context, client kubernetes.Interface, data string) error {
	token, ok := leaderelection.FencingTokenFromContext(ctx)
	if !ok {
		return fmt.Errorf("save %q: not leading any more", data)
	}
	configMaps := client.CoreV1().ConfigMaps("default")
	state, err := configMaps.Get(ctx, "state", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if last, err := leaderelection.ParseFencingToken(
		state.Annotations[tokenAnnotation],
	); err == nil &&
		token.Before(last) {
		return fmt.Errorf("save %q: a later leader has written", data)
	}
	metav1.SetMetaDataAnnotation(&state.ObjectMeta, tokenAnnotation, token.String())
	state.Data = map[string]string{"data": data}
	_, err = configMaps.Update(ctx, state, metav1.UpdateOptions{})
	return err
}

// A token on each write keeps a leader of the past from undoing what the present one has done.
func ExampleFencingTokenFromContext() {
	config, stop := cluster()
	defer stop()
	client := kubernetes.NewForConfigOrDie(config)
	state := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "state"}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(
		quiet(), state, metav1.CreateOptions{},
	); err != nil {
		panic(err)
	}

	for _, id := range []string{"first", "second"} {
		ctx, cancel := context.WithCancel(quiet())
		var led context.Context
		elected := member(config, id)
		elected.Callbacks.OnStartedLeading = func(ctx context.Context) {
			led = ctx
			token, _ := leaderelection.FencingTokenFromContext(ctx)
			fmt.Println("term", token.Transitions, "error:", save(ctx, client, "by "+id))
			cancel()
		}
		leaderelection.RunOrDie(ctx, elected)
		fmt.Println("afterwards:", save(led, client, "too late"))
	}
	// Output:
	// term 0 error: <nil>
	// afterwards: save "too late": not leading any more
	// term 1 error: <nil>
	// afterwards: save "too late": not leading any more
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
