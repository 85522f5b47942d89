// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A CertificateSigningRequest is written by three parties. Each changes its part alone:
//
//	create             the spec, to which the server adds the user; it never changes
//	update .../approval    the conditions
//	update .../status      the certificate, and conditions besides Approved and Denied
//
// No signer runs here, so a request that is approved gets no certificate from the server.

type signingRequest struct {
	certificatesv1.CertificateSigningRequest
}

type requestCondition = certificatesv1.RequestConditionType

// asked writes the user into a new CertificateSigningRequest.
func asked(obj *object, user *authenticationv1.UserInfo) {
	obj.edit("spec", func(spec map[string]any) {
		spec["username"], spec["uid"], spec["groups"] = user.Username, user.UID, user.Groups
		spec["extra"] = user.Extra
	})
	obj.put("status", struct{}{})
	if r, err := typedAs[signingRequest](obj); err == nil {
		obj.put("spec", r.Spec) // without the fields that are empty
	}
}

// keepRequest undoes the changes that a write of a CertificateSigningRequest cannot make, and sets
// the times of its conditions.
func keepRequest(obj, old *object, subresource string) {
	now, err := typedAs[signingRequest](obj)
	was, _ := typedAs[signingRequest](old) // it was stored
	if err != nil || subresource == directSubresource {
		return
	}
	obj.setField("spec", old.fields["spec"])
	next := was.Status
	switch subresource {
	case "approval":
		next.Conditions = now.Status.Conditions
	case "status":
		next = now.Status
		for _, kind := range decisions {
			if have, sent := was.of(kind), now.of(kind); len(have) == 1 && len(sent) == 1 {
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
		for _, before := range was.of(c.Type) {
			if before.Status == c.Status {
				c.LastTransitionTime = before.LastTransitionTime
			}
		}
	}
	obj.put("status", next)
}

// decisions are the conditions of an approval, which stay.
var decisions = []requestCondition{certificatesv1.CertificateApproved,
	certificatesv1.CertificateDenied}

// of returns the conditions of a type.
func (r *signingRequest) of(kind requestCondition) (
	found []*certificatesv1.CertificateSigningRequestCondition) {
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Type == kind {
			found = append(found, c)
		}
	}
	return found
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

var (
	conditionsPath  = field.NewPath("status", "conditions")
	certificatePath = field.NewPath("status", "certificate")
)

// requestRules are the rules of the kind CertificateSigningRequest.
type requestRules struct{}

func (requestRules) complete(_, _ *object) {}

func (requestRules) check(obj, old *object, subresource string) field.ErrorList {
	csr, err := typedAs[signingRequest](obj)
	if err != nil {
		return field.ErrorList{field.Invalid(nil, obj.gvk.Kind, err.Error())}
	}
	f, spec := &findings{}, &csr.Spec
	if err := checkRequest(spec.Request); err != nil {
		f.invalid(specPath.Child("request"), spec.Request, err.Error())
	}
	if len(spec.Usages) == 0 {
		f.add(field.Required(specPath.Child("usages"), ""))
	}
	at := specPath.Child("signerName")
	if f.required(at, spec.SignerName) && strings.Count(spec.SignerName, "/") != 1 {
		f.invalid(at, spec.SignerName,
			"must be a fully qualified domain and path of the form 'example.com/signer-name'")
	}
	if s := spec.ExpirationSeconds; s != nil && *s < 600 {
		f.invalid(specPath.Child("expirationSeconds"), *s,
			"may not specify a duration less than 600 seconds (10 minutes)")
	}
	f.conditions(csr)
	if block, _ := pem.Decode(csr.Status.Certificate); block == nil &&
		len(csr.Status.Certificate) > 0 {
		f.invalid(certificatePath, "<certificate data>",
			"must contain at least one CERTIFICATE PEM block")
	}
	if was, _ := typedAs[signingRequest](old); was != nil && subresource != directSubresource {
		f.decided(csr, was, subresource)
	}
	return f.errs
}

func (f *findings) conditions(csr *signingRequest) {
	seen := map[string]bool{}
	for i, c := range csr.Status.Conditions {
		at := conditionsPath.Index(i)
		f.required(at.Child("type"), string(c.Type))
		known := []corev1.ConditionStatus{corev1.ConditionTrue}
		if !slices.Contains(decisions, c.Type) && c.Type != certificatesv1.CertificateFailed {
			known = append(known, corev1.ConditionFalse, corev1.ConditionUnknown)
			slices.Sort(known)
		}
		if f.required(at.Child("status"), string(c.Status)) {
			oneOf(f, at.Child("status"), c.Status, known...)
		}
		f.unique(at.Child("type"), string(c.Type), seen)
	}
	if seen["Approved"] && seen["Denied"] {
		const a, b = `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
		f.invalid(conditionsPath, "{"+a+", "+b+"}",
			"must specify at most one of: `"+a+"`, `"+b+"`")
	}
}

// decided reports changes of what has been decided, or is decided elsewhere.
func (f *findings) decided(csr, was *signingRequest, subresource string) {
	for _, kind := range append(slices.Clone(decisions), certificatesv1.CertificateFailed) {
		more, what := len(csr.of(kind))-len(was.of(kind)), ""
		switch {
		case more < 0:
			what = "remove"
		case more > 0 && subresource != "approval" && kind != certificatesv1.CertificateFailed:
			what = "add"
		default:
			continue
		}
		f.add(field.Forbidden(conditionsPath,
			fmt.Sprintf("updates may not %s a condition of type %q", what, kind)))
	}
	if before := was.Status.Certificate; len(before) > 0 &&
		!slices.Equal(before, csr.Status.Certificate) {
		f.add(field.Forbidden(certificatePath,
			"updates may not modify existing certificate content"))
	}
}

func checkRequest(text []byte) error {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = request.CheckSignature()
	}
	return err
}

// requestCells are the columns of kubectl get certificatesigningrequests.
func requestCells(csr *signingRequest) []any {
	state, lasts := "Pending", "<none>"
	if s := csr.Spec.ExpirationSeconds; s != nil {
		lasts = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	for _, kind := range decisions {
		if len(csr.of(kind)) > 0 {
			state = string(kind)
		}
	}
	if len(csr.of(certificatesv1.CertificateFailed)) > 0 {
		state += ",Failed"
	}
	if len(csr.Status.Certificate) > 0 {
		state += ",Issued"
	}
	return cells(csr.Name, age(csr.CreationTimestamp), orNone(csr.Spec.SignerName),
		csr.Spec.Username, lasts, state)
}
