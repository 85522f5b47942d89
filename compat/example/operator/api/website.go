// SPDX-License-Identifier: Apache-2.0

// Package api has the custom resource of the three operators beside it, and what they have in
// common: the name of a page, its ConfigMap, and the DNS that the finalizer cleans up.
package api

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Website publishes pages under a host name.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WebsiteSpec   `json:"spec"`
	Status            WebsiteStatus `json:"status,omitzero"`
}

// WebsiteSpec is what the user wants.
type WebsiteSpec struct {
	Host  string            `json:"host"`
	Pages map[string]string `json:"pages,omitempty"` // name to content
}

// WebsiteStatus is what the operator has seen and done.
type WebsiteStatus struct {
	// ObservedGeneration is the generation of the spec that the rest of the status is about.
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Names of the resource, its finalizer and its condition.
const (
	Finalizer = "example.com/dns"
	Ready     = "Ready"
)

var (
	// Resource is the plural, in paths.
	Resource = schema.GroupVersionResource{
		Group: "example.com", Version: "v1", Resource: "websites"}
	// Kind is in the objects.
	Kind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}
)

// DeepCopyObject copies everything. Controller-gen writes such methods for larger types.
func (w *Website) DeepCopyObject() runtime.Object {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	copied.Spec.Pages = maps.Clone(w.Spec.Pages)
	copied.Status.Conditions = nil
	for _, condition := range w.Status.Conditions {
		copied.Status.Conditions = append(copied.Status.Conditions, *condition.DeepCopy())
	}
	return &copied
}

// Copy is DeepCopyObject with the type.
func (w *Website) Copy() *Website { return w.DeepCopyObject().(*Website) }

// Page returns the ConfigMap that the website wants for one of its pages.
func (w *Website) Page(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: w.Name + "-" + name,
			Labels:          map[string]string{"website": w.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w, Kind)},
		},
		Data: map[string]string{"content": w.Spec.Pages[name]},
	}
}

// Records is a DNS, which knows nothing of Kubernetes: only the operator cleans up there.
// Both methods may be called again for what is done already.
type Records interface {
	Set(ctx context.Context, host string) error
	Remove(ctx context.Context, host string) error
}

// Folder is a DNS with a file for each host.
type Folder string

// Set implements Records.
func (f Folder) Set(_ context.Context, host string) error {
	return os.WriteFile(filepath.Join(string(f), filepath.Base(host)), nil, 0o600)
}

// Remove implements Records.
func (f Folder) Remove(_ context.Context, host string) error {
	err := os.Remove(filepath.Join(string(f), filepath.Base(host)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
