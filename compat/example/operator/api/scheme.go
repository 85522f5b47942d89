// SPDX-License-Identifier: Apache-2.0

package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WebsiteList is what clients of client-go and of controller-runtime need besides Website.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Website `json:"items"`
}

// DeepCopyObject copies everything.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]Website, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].Copy()
	}
	return &copied
}

// AddToScheme adds both types to scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(Kind.GroupVersion(), &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, Kind.GroupVersion())
	return nil
}
