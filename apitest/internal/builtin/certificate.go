// SPDX-License-Identifier: Apache-2.0

//go:build !js

package builtin

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// SigningRequest is a CertificateSigningRequest.
type SigningRequest struct {
	certificatesv1.CertificateSigningRequest
}

// Decisions are the conditions of an approval, which stay.
var Decisions = []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved,
	certificatesv1.CertificateDenied}

// Of returns the conditions of a type.
func (r *SigningRequest) Of(kind certificatesv1.RequestConditionType) (
	found []*certificatesv1.CertificateSigningRequestCondition) {
	for i := range r.Status.Conditions {
		if c := &r.Status.Conditions[i]; c.Type == kind {
			found = append(found, c)
		}
	}
	return found
}

var (
	conditionsPath  = field.NewPath("status", "conditions")
	certificatePath = field.NewPath("status", "certificate")
)

// requestRules are the rules of the kind CertificateSigningRequest.
type requestRules struct{}

func (requestRules) fill(map[string]any) {}

func (requestRules) complete(_, _ map[string]any) {}

func (requestRules) check(obj, old map[string]any, subresource string) field.ErrorList {
	csr, err := typedAs[SigningRequest](obj)
	if err != nil {
		return field.ErrorList{field.Invalid(nil, obj["kind"], err.Error())}
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
	written := []string{"", "approval", "status"} // by a request, not by the test itself
	if was, _ := typedAs[SigningRequest](old); was != nil && slices.Contains(written, subresource) {
		f.decided(csr, was, subresource)
	}
	return f.errs
}

func (f *findings) conditions(csr *SigningRequest) {
	seen := map[string]bool{}
	for i, c := range csr.Status.Conditions {
		at := conditionsPath.Index(i)
		f.required(at.Child("type"), string(c.Type))
		known := []corev1.ConditionStatus{corev1.ConditionTrue}
		if !slices.Contains(Decisions, c.Type) && c.Type != certificatesv1.CertificateFailed {
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
func (f *findings) decided(csr, was *SigningRequest, subresource string) {
	for _, kind := range append(slices.Clone(Decisions), certificatesv1.CertificateFailed) {
		more, what := len(csr.Of(kind))-len(was.Of(kind)), ""
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
