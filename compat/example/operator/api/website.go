// SPDX-License-Identifier: Apache-2.0

// Package api has the custom resource of the three operators beside it, and what they have in
// common: the name of a page, its ConfigMap, and the DNS that the finalizer cleans up.
package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

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

// Adopt makes the website the controller of a page without one. The page keeps its other owners.
func (w *Website) Adopt(page *corev1.ConfigMap) {
	if metav1.IsControlledBy(page, w) {
		return
	}
	others := slices.DeleteFunc(page.OwnerReferences,
		func(owner metav1.OwnerReference) bool { return owner.UID == w.UID })
	page.OwnerReferences = append(others, *metav1.NewControllerRef(w, Kind))
}

// Records is a DNS, which knows nothing of Kubernetes: only the operator cleans up there. A record
// belongs to the website that has set it, by name. Both methods may be called again for what is
// done already.
type Records interface {
	// Set sets the record of the website's host. It fails if another website has it.
	Set(ctx context.Context, site *Website) error
	// Remove removes the record of the website's host, unless another website has it.
	Remove(ctx context.Context, site *Website) error
}

// Folder is a DNS with a file for each host, which has the name of the website.
type Folder string

// Set implements Records.
func (f Folder) Set(_ context.Context, site *Website) error {
	owner, err := f.owner(site)
	if errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(f.file(site), []byte(site.key()), 0o600)
	}
	if err == nil && owner != site.key() {
		return fmt.Errorf("host %s belongs to website %s", site.Spec.Host, owner)
	}
	return err
}

// Remove implements Records.
func (f Folder) Remove(_ context.Context, site *Website) error {
	owner, err := f.owner(site)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || owner != site.key():
		return err
	}
	return os.Remove(f.file(site))
}

func (f Folder) owner(site *Website) (string, error) {
	text, err := os.ReadFile(f.file(site))
	return string(text), err
}

func (f Folder) file(site *Website) string {
	return filepath.Join(string(f), filepath.Base(site.Spec.Host))
}

func (w *Website) key() string { return w.Namespace + "/" + w.Name }
