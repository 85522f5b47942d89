// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	framework "example.com/informerstack/compat/cache/testing"
	compat "example.com/informerstack/compat/watch"
	"example.com/informerstack/internal/tools/narrate"
)

// A program waits until a Pod runs, whatever happens to the connection meanwhile.
func Example() {
	server := framework.NewFakeControllerSource()
	defer server.Shutdown()
	server.Add(inPhase(corev1.PodPending))
	go server.Modify(inPhase(corev1.PodRunning))

	runs := func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		return ok && pod.Status.Phase == corev1.PodRunning, nil
	}
	event, err := compat.UntilWithSync(context.Background(), server, &corev1.Pod{}, nil, runs)
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := event.Object.(*corev1.Pod)
	fmt.Println(pod.Name, "is", pod.Status.Phase)
	// Output:
	// web-0 is Running
}

func inPhase(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
