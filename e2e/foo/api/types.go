// SPDX-License-Identifier: Apache-2.0

// Package api is the post's custom resource: a Foo names a Deployment and its number of replicas.
//
// In a real project, everything but the types would be generated. Read types.go, crd.yaml,
// client.go.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// GroupVersion is the API that Foos belong to.
var GroupVersion = schema.GroupVersion{Group: "samples.example.com", Version: "v1alpha1"}

// FooKind is the kind of a Foo, used in owner references.
var FooKind = GroupVersion.WithKind("Foo")

// Scheme contains Foo and FooList.
var Scheme = runtime.NewScheme()

func init() {
	Scheme.AddKnownTypes(GroupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(Scheme, GroupVersion)
	utilruntime.Must(metav1.AddMetaToScheme(Scheme))
}

// Foo specifies a Deployment.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FooSpec   `json:"spec"`
	Status FooStatus `json:"status,omitzero"`
}

// FooSpec is the desired state.
type FooSpec struct {
	// DeploymentName is the Deployment's name, in the Foo's namespace.
	DeploymentName string `json:"deploymentName"`
	// Replicas is its number of replicas. nil leaves the number to others.
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is the observed state.
type FooStatus struct {
	// AvailableReplicas is the number of available replicas of the Deployment.
	AvailableReplicas int32 `json:"availableReplicas"`
}

// FooList is the answer to a LIST of Foos.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Foo `json:"items"`
}

// DeepCopyInto makes out a copy that shares no memory with f.
func (f *Foo) DeepCopyInto(out *Foo) {
	*out = *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if f.Spec.Replicas != nil {
		out.Spec.Replicas = new(*f.Spec.Replicas)
	}
}

// DeepCopy returns a copy that shares no memory with f.
func (f *Foo) DeepCopy() *Foo {
	out := new(Foo)
	f.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (f *Foo) DeepCopyObject() runtime.Object { return f.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *FooList) DeepCopyObject() runtime.Object {
	out := &FooList{TypeMeta: l.TypeMeta, Items: make([]Foo, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}
