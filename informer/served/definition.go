// SPDX-License-Identifier: Apache-2.0

package served

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Phase says whether a server serves a kind in the version that an informer asks for.
type Phase string

// The phases.
const (
	// Unknown is the phase until the definitions are listed.
	Unknown Phase = "unknown"
	// Absent: there is no CustomResourceDefinition, and no APIService if they are followed.
	Absent Phase = "absent"
	// NotEstablished: the server has not accepted the CustomResourceDefinition.
	NotEstablished Phase = "not established"
	// VersionNotServed: the kind is served in other versions only.
	VersionNotServed Phase = "version not served"
	// Serving: requests are answered. A definition that is being deleted serves until it is gone.
	Serving Phase = "serving"
	// Unwatched: this client may not list the definitions, or Kinds has stopped. Informers list
	// and watch as ordinary ones do.
	Unwatched Phase = "unwatched"
)

// isGone reports that a request would be answered with 404.
func (p Phase) isGone() bool {
	return p == Absent || p == NotEstablished || p == VersionNotServed
}

// verdict is what the definitions say about a kind.
type verdict struct {
	phase  Phase
	reason string
	uid    types.UID // of the CustomResourceDefinition, if there is one
}

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apiServices = schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// definition is the part of a CustomResourceDefinition that says what is served. Its schemas, which
// are most of it, are skipped while it is decoded.
type definition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// DeepCopyObject implements runtime.Object.
func (d *definition) DeepCopyObject() runtime.Object {
	c := *d
	d.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Versions = slices.Clone(d.Spec.Versions)
	c.Status.Conditions = slices.Clone(d.Status.Conditions)
	return &c
}

// judge returns what d says about its kind in version.
func (d *definition) judge(version string) verdict {
	v := verdict{phase: NotEstablished, uid: d.UID,
		reason: "CustomResourceDefinition " + d.Name + " is not established"}
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == "Established" && c.Status == string(metav1.ConditionTrue):
			v.phase = Serving
		case c.Type == "NamesAccepted" && c.Status == string(metav1.ConditionFalse):
			v.reason += ": " + c.Message
		}
	}
	if v.phase != Serving {
		return v
	}
	v.reason = ""
	var others []string
	for _, one := range d.Spec.Versions {
		if one.Served && one.Name == version {
			if d.DeletionTimestamp != nil {
				v.reason = "CustomResourceDefinition " + d.Name + " is being deleted"
			}
			return v
		}
		if one.Served {
			others = append(others, one.Name)
		}
	}
	v.phase, v.reason = VersionNotServed, version+" is not served; no version is"
	if len(others) > 0 {
		v.reason = fmt.Sprintf("%s is not served; served: %s", version, strings.Join(others, ", "))
	}
	return v
}

// apiService is the part of an APIService that says whether another server answers.
type apiService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Service *struct {
			Name string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (s *apiService) DeepCopyObject() runtime.Object {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	if s.Spec.Service != nil {
		c.Spec.Service = new(*s.Spec.Service)
	}
	return &c
}

// managedLabel is "onstart" on the APIService of a built-in group.
const managedLabel = "kube-aggregator.kubernetes.io/automanaged"

// serves reports whether s shows that its group and version are served, by another server or as a
// built-in group. The APIService of a group of custom resources shows nothing about one of them. A
// server that does not answer at the moment is an ordinary failure: its kinds are not gone.
func (s *apiService) serves() bool {
	return s.Spec.Service != nil || s.Labels[managedLabel] == "onstart"
}

// slim drops what is not read from the metadata of an object that was received.
func slim(obj any) (any, error) {
	m, ok := obj.(metav1.ObjectMetaAccessor)
	if !ok {
		return obj, nil
	}
	if all, ok := m.GetObjectMeta().(*metav1.ObjectMeta); ok {
		*all = metav1.ObjectMeta{Name: all.Name, UID: all.UID, Labels: all.Labels,
			ResourceVersion: all.ResourceVersion, DeletionTimestamp: all.DeletionTimestamp}
	}
	return obj, nil
}

// builtIn are the groups of Kubernetes itself, which need no definition.
var builtIn = []string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
	"authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
	"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions",
	"flowcontrol.apiserver.k8s.io", "imagepolicy.k8s.io", "internal.apiserver.k8s.io",
	"lifecycle.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
	"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}
