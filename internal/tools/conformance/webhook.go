// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startWebhook serves webhooks for admission until the test ends. The path of the URL says what
// they answer:
//
//	/deny      no, without a reason
//	/forbid    no, with a message and a code
//	/report    no, with the request as the message
//	/label     yes, with a patch that adds the label "seen"
//	/count     yes, with a patch that sets the label "count" to the number of labels
//	/spoil     yes, with a patch that cannot be applied
//	/other     yes, with the uid of another request
//	/fail      an error of HTTP
func (p *player) startWebhook() {
	server := httptest.NewTLSServer(http.HandlerFunc(review))
	p.t.Cleanup(server.Close)
	p.vars["hook"] = server.URL
	p.names[server.URL] = "$hook"
	p.vars["ca"] = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: server.Certificate().Raw,
	}))
	p.names[p.vars["ca"]] = "$ca"
}

func review(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path == "/fail" {
		http.Error(w, "it fails", http.StatusInternalServerError)
		return
	}
	request, patchType := review.Request, admissionv1.PatchTypeJSONPatch
	review.Request = nil
	response := &admissionv1.AdmissionResponse{UID: request.UID}
	review.Response = response
	switch r.URL.Path {
	case "/forbid":
		response.Result = &metav1.Status{Code: http.StatusForbidden, Message: "not here"}
	case "/report":
		response.Result = &metav1.Status{Message: describe(request)}
	case "/label":
		response.Allowed, response.PatchType = true, &patchType
		response.Patch = []byte(`[{"op":"add","path":"/metadata/labels/seen","value":"yes"}]`)
	case "/count":
		var object struct {
			Metadata struct{ Labels map[string]string }
		}
		_ = json.Unmarshal(request.Object.Raw, &object) // then it has no labels
		response.Allowed, response.PatchType = true, &patchType
		response.Patch = fmt.Appendf(nil, `[{"op":"add","path":"/metadata/labels/count","value":"%d"}]`,
			len(object.Metadata.Labels))
	case "/spoil":
		response.Allowed, response.PatchType = true, &patchType
		response.Patch = []byte(`[{"op":"remove","path":"/absent"}]`)
	case "/other":
		response.Allowed, response.UID = true, "other"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the server may be gone
}

// describe returns a request to a webhook as text, without the uid and the user.
func describe(r *admissionv1.AdmissionRequest) string {
	var options metav1.TypeMeta
	_ = json.Unmarshal(r.Options.Raw, &options) // then it has no kind
	var object, old struct {
		Metadata struct {
			Name            string
			GenerateName    string
			Labels          map[string]string
			UID             string
			ResourceVersion string
		}
	}
	state := func(raw []byte, into any) string {
		if raw == nil {
			return "none"
		}
		_ = json.Unmarshal(raw, into) // then it has no metadata
		return ""
	}
	none, noOld := state(r.Object.Raw, &object), state(r.OldObject.Raw, &old)
	if prefix := object.Metadata.GenerateName; prefix != "" && r.Name != "" {
		r.Name, object.Metadata.Name = prefix+"<random>", prefix+"<random>"
	}
	return fmt.Sprintf("%s %s %s/%q of %s in %q named %q, object %s%q with uid %t and version %t, "+
		"old %s%q with version %t, dry run %t, %s",
		r.Operation, r.Kind, r.Resource, r.SubResource, r.RequestResource, r.Namespace, r.Name,
		none, object.Metadata.Name, object.Metadata.UID != "",
		object.Metadata.ResourceVersion != "",
		noOld, old.Metadata.Name, old.Metadata.ResourceVersion != "", *r.DryRun, options.Kind)
}
