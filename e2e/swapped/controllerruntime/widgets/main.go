// SPDX-License-Identifier: Apache-2.0

// Widgets is an operator on a custom resource. It reads each Widget from its cache and finds that
// nothing is to be done, so its costs are those of the cache and the queue. Nothing in it depends
// on the stack that it may run on.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Widget is a custom resource.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is the wish.
type WidgetSpec struct {
	Size     string            `json:"size,omitempty"`
	Replicas *int32            `json:"replicas,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	Parts    []WidgetPart      `json:"parts,omitempty"`
}

// WidgetPart is a part of a Widget.
type WidgetPart struct {
	Name  string   `json:"name"`
	Image string   `json:"image,omitempty"`
	Args  []string `json:"args,omitempty"`
}

// WidgetStatus is the state.
type WidgetStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object { return copyOf(w) }

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object { return copyOf(l) }

// copyOf is a copy for operators that do not generate code.
func copyOf[T any](from *T) *T {
	to := new(T)
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic(err)
	}
	return to
}

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to serve metrics")
	flag.Parse() // controller-runtime has the flag --kubeconfig
	ctrl.SetLogger(klog.Background())
	if err := run(*address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address string) error {
	clientConfig, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "wire.example.com", Version: "v1"}
	scheme.AddKnownTypes(gv, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, gv)
	manager, err := ctrl.NewManager(clientConfig, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: address},
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&Widget{}).
		Complete(&reader{manager.GetClient()}); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// reader reads Widgets.
type reader struct{ client client.Client }

// Reconcile reads a Widget's metadata from the cache.
func (r *reader) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	err := r.client.Get(ctx, request.NamespacedName, &widget, client.UnsafeDisableDeepCopy)
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
