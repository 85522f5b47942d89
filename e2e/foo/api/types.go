// SPDX-License-Identifier: Apache-2.0

// Package api is the post's custom resource: a Foo names a Deployment and says how many replicas it
// has.
//
// In a project of its own all of this but the types would be generated. Read types.go, crd.yaml,
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

// FooKind is what a Foo is, in an owner reference for example.
var FooKind = GroupVersion.WithKind("Foo")

// Scheme knows Foos.
var Scheme = runtime.NewScheme()

func init() {
	Scheme.AddKnownTypes(GroupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(Scheme, GroupVersion)
	utilruntime.Must(metav1.AddMetaToScheme(Scheme))
}

// Foo wants a Deployment.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FooSpec   `json:"spec"`
	Status FooStatus `json:"status,omitzero"`
}

// FooSpec is what is wanted.
type FooSpec struct {
	// DeploymentName is the Deployment's name, in the Foo's namespace.
	DeploymentName string `json:"deploymentName"`
	// Replicas is how many replicas it has. nil leaves that to others.
	Replicas *int32 `json:"replicas,omitempty"`
}

// FooStatus is what there is.
type FooStatus struct {
	// AvailableReplicas is how many of the Deployment's replicas are available.
	AvailableReplicas int32 `json:"availableReplicas"`
}

// FooList is what a LIST of Foos answers.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Foo `json:"items"`
}

// DeepCopyInto makes out a copy that shares nothing with f.
func (f *Foo) DeepCopyInto(out *Foo) {
	*out = *f
	f.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if f.Spec.Replicas != nil {
		out.Spec.Replicas = new(*f.Spec.Replicas)
	}
}

// DeepCopy returns a copy that shares nothing with f.
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
