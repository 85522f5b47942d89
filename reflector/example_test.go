// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector"
)

// printer is a Store that prints its calls.
type printer struct{}

func (printer) Add(obj any) error    { return show("add", obj) }
func (printer) Update(obj any) error { return show("update", obj) }
func (printer) Delete(obj any) error { return show("delete", obj) }
func (printer) Resync() error        { return nil }

func (printer) Replace(list []any, resourceVersion string) error {
	fmt.Printf("replace by %d objects at %s\n", len(list), resourceVersion)
	return nil
}

func show(what string, obj any) error {
	fmt.Println(what, obj.(*v1.Pod).Name)
	return nil
}

func pod(name, resourceVersion string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion}}
}

func off() *bool { return new(bool) }

// A reflector lists once, then follows the watch.
func ExampleReflector() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := watch.NewFake()
	lw := &reflector.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1.PodList{
				ListMeta: metav1.ListMeta{ResourceVersion: "5"},
				Items:    []v1.Pod{*pod("a", "3")},
			}, nil
		},
		WatchFuncWithContext: func(
			_ context.Context, options metav1.ListOptions,
		) (watch.Interface, error) {
			fmt.Println("watch from", options.ResourceVersion)
			return server, nil
		},
	}
	go func() {
		server.Modify(pod("a", "6"))
		server.Add(pod("b", "7"))
		server.Delete(pod("a", "8"))
		cancel()
	}()

	r := reflector.New(lw, &v1.Pod{}, printer{}, reflector.Options{UseWatchList: off()})
	r.Run(ctx)
	fmt.Println("the store is at", r.LastSyncResourceVersion())

	// Output:
	// replace by 1 objects at 5
	// watch from 5
	// update a
	// add b
	// delete a
	// the store is at 8
}

// Three resourceVersions of a LIST: "0" is anything the server has at hand, a number is nothing
// older than that, and "" is the newest there is. A watch that is only closed does not cause a LIST
// at all; one that has expired (410) does.
func ExampleReflector_relist() {
	ctx, cancel := context.WithCancel(context.Background())
	listCount, watchCount := 0, 0
	lw := &reflector.ListWatch{
		ListWithContextFunc: func(
			_ context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			fmt.Printf("LIST at %q\n", options.ResourceVersion)
			if listCount++; listCount == 2 {
				return nil, apierrors.NewResourceExpired("5 is too old")
			}
			return &v1.PodList{
				ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(5 * listCount)},
			}, nil
		},
		WatchFuncWithContext: func(
			_ context.Context, options metav1.ListOptions,
		) (watch.Interface, error) {
			fmt.Printf("WATCH from %q\n", options.ResourceVersion)
			server := watch.NewFakeWithChanSize(1, false)
			switch watchCount++; watchCount {
			case 1:
				server.Add(pod("a", "6"))
				server.Stop() // closed
			case 2:
				server.Error(&apierrors.NewResourceExpired("6 is too old").ErrStatus)
			default:
				cancel()
			}
			return server, nil
		},
	}
	reflector.New(lw, &v1.Pod{}, printer{}, reflector.Options{
		UseWatchList: off(),
		Backoff:      &wait.Backoff{Duration: time.Millisecond},
	}).Run(ctx)

	// Output:
	// LIST at "0"
	// replace by 0 objects at 5
	// WATCH from "5"
	// add a
	// WATCH from "6"
	// LIST at "6"
	// LIST at ""
	// replace by 0 objects at 15
	// WATCH from "15"
}
