// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"cmp"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest/internal/builtin"
)

// A CertificateSigningRequest is written by three parties. Each changes its part alone:
//
//	create              the spec, to which the server adds the user; it never changes
//	update .../approval the conditions
//	update .../status   the certificate, and conditions besides Approved and Denied
//
// No signer runs here, so a request that is approved gets no certificate from the server.

func readRequest(obj *object) (*builtin.SigningRequest, error) {
	r := &builtin.SigningRequest{}
	return r, cmp.Or(obj.get("spec", &r.Spec), obj.get("status", &r.Status))
}

// asked writes the user into a new CertificateSigningRequest.
func asked(obj *object, user *authenticationv1.UserInfo) {
	obj.edit("spec", func(spec map[string]any) {
		spec["username"], spec["uid"], spec["groups"] = user.Username, user.UID, user.Groups
		spec["extra"] = user.Extra
	})
	obj.put("status", struct{}{})
	if r, err := readRequest(obj); err == nil {
		obj.put("spec", r.Spec) // without the fields that are empty
	}
}

// keepRequest undoes the changes that a write of a CertificateSigningRequest cannot make, and sets
// the times of its conditions.
func keepRequest(obj, old *object, subresource string) {
	if subresource == directSubresource {
		return
	}
	obj.setField("spec", old.fields["spec"])
	now, err := readRequest(obj)
	if err != nil {
		return // accept reports it, with Options.BuiltinRules
	}
	was, _ := readRequest(old) // nothing to keep if it was stored with other types
	next := was.Status
	switch subresource {
	case "approval":
		next.Conditions = now.Status.Conditions
	case "status":
		next = now.Status
		for _, kind := range builtin.Decisions {
			if have, sent := was.Of(kind), now.Of(kind); len(have) == 1 && len(sent) == 1 {
				*sent[0] = *have[0]
			}
		}
	}
	for i := range next.Conditions {
		c := &next.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = metav1.Now()
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = metav1.Now()
		for _, before := range was.Of(c.Type) {
			if before.Status == c.Status {
				c.LastTransitionTime = before.LastTransitionTime
			}
		}
	}
	obj.put("status", next)
}

// mayDecideLocked refuses an approval, or a certificate, of a user without the permission for the
// signer of the request.
func (c *call) mayDecideLocked(user authenticationv1.UserInfo, obj, old *object) error {
	verb := map[string]string{"approval": "approve", "status": "sign"}[c.subresource]
	if verb == "" || string(obj.fields["status"]) == string(old.fields["status"]) {
		return nil
	}
	signer := old.fieldAt("spec.signerName")
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		if c.server.allowsLocked(user, verb, certificatesv1.GroupName, "signers", "", name) {
			return nil
		}
	}
	return apierrors.NewForbidden(c.resource.GroupResource(), c.name,
		fmt.Errorf("user not permitted to %s requests with signerName %q", verb, signer))
}
