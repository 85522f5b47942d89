// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// absent says why a subresource of a cluster is not there.
var absent = map[string]string{
	"pods/log":                 "no container runs here, so a pod has no logs",
	"pods/exec":                "no container runs here, so no command can run in it",
	"pods/attach":              "no container runs here, so there is nothing to attach to",
	"pods/portforward":         "no container runs here, so no port is open",
	"pods/ephemeralcontainers": "no container runs here, so none can be added to debug it",
	"pods/resize":              "no container runs here, so none can be resized",
	"pods/proxy":               "no container runs here, so a pod cannot be reached",
	"services/proxy":           "no container runs here, so a service cannot be reached",
	"nodes/proxy":              "no kubelet runs here, so a node cannot be reached",
}

// absence is the error for a subresource that a cluster has and this server has not, or nil.
func (c *call) absence() error {
	first, _, _ := strings.Cut(c.Subresource, "/")
	why := absent[c.Resource+"/"+first]
	if c.Group != "" || why == "" {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusNotImplemented, Message: "apitest: " + why}}
}
