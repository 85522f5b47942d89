// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/apitest"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// labels is a hook that adds a label.
func labels(name, label string) apitest.AdmissionHook {
	json := admissionv1.PatchTypeJSONPatch
	return apitest.AdmissionHook{Name: name, Mutates: true, Review: func(_ context.Context,
		r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, PatchType: &json, Patch: []byte(
			`[{"op":"add","path":"/metadata/labels","value":{"` + label + `":"` + r.Name + `"}}]`)}
	}}
}

// Hooks that mutate are asked before the others, in their order, and see what the ones before them
// have changed.
func TestAdmission_Order(t *testing.T) {
	var seen []string
	sees := func(name string, mutates bool) apitest.AdmissionHook {
		return apitest.AdmissionHook{Name: name, Mutates: mutates, Review: func(_ context.Context,
			r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			var obj corev1.ConfigMap
			if json.Unmarshal(r.Object.Raw, &obj) == nil {
				seen = append(seen, fmt.Sprint(name, r.Operation, obj.Labels))
			}
			return nil
		}}
	}
	s := start(t, apitest.Options{Scheme: scheme.Scheme, Admission: []apitest.AdmissionHook{
		sees("last", false), sees("first", true), labels("one", "a"), sees("third", true),
	}})
	assert.Equal(t, 201, send(t, s, "POST", configMaps, "", `{"metadata":{"name":"x"}}`).code)
	assert.Equal(t, []string{"firstCREATEmap[]", "thirdCREATEmap[a:x]", "lastCREATEmap[a:x]"}, seen)

	obj := configMap("default", "x")
	require.NoError(t, s.Get(obj))
	assert.Equal(t, map[string]string{"a": "x"}, obj.Labels)

	seen = nil
	obj.Labels = nil
	require.NoError(t, s.Update(obj), "a write of the test")
	assert.Empty(t, seen)
}

// A hook may make requests to the server. If they change the object, the update is computed again
// from the new state, and reviewed again. An update of an old version stays a conflict.
func TestAdmission_ObjectChangesMeanwhile(t *testing.T) {
	for _, mutates := range []bool{true, false} {
		t.Run(fmt.Sprintf("mutates=%t", mutates), func(t *testing.T) {
			var s *apitest.Server
			var asked atomic.Int32
			s = start(t, apitest.Options{Admission: []apitest.AdmissionHook{{
				Name: "busy", Mutates: mutates,
				Review: func(context.Context,
					*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
					if n := asked.Add(1); n <= 2 {
						obj := configMap("default", "x")
						if s.Get(obj) == nil {
							obj.Data = map[string]string{"meanwhile": fmt.Sprint(n)}
							assert.NoError(t, s.Update(obj))
						}
					}
					return nil
				},
			}}})
			obj := configMap("default", "x")
			require.NoError(t, s.Create(obj))
			old := obj.ResourceVersion
			got := send(t, s, "PATCH", configMaps+"/x", "application/merge-patch+json",
				`{"data":{"mine":"1"}}`)
			assert.Equal(t, 200, got.code, got.body)
			assert.Equal(t, int32(3), asked.Load())
			require.NoError(t, s.Get(obj))
			assert.Equal(t, map[string]string{"mine": "1", "meanwhile": "2"}, obj.Data)

			got = send(t, s, "PUT", configMaps+"/x", "", `{"metadata":{"name":"x"},"data":{"put":"2"}}`)
			assert.Equal(t, 200, got.code, got.body)
			got = send(t, s, "PUT", configMaps+"/x", "",
				`{"metadata":{"name":"x","resourceVersion":"`+old+`"}}`)
			assert.Equal(t, 409, got.code, got.body)
		})
	}
}

// An object that is deleted during the review of its update is not found; one that is created
// during that of its create exists; a namespace that terminates takes no more objects.
func TestAdmission_ObjectComesAndGoesMeanwhile(t *testing.T) {
	var s *apitest.Server
	s = start(t, apitest.Options{Admission: []apitest.AdmissionHook{{Name: "busy",
		Review: func(_ context.Context,
			r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			obj := configMap(r.Namespace, r.Name)
			switch r.Name {
			case "gone":
				assert.NoError(t, s.Delete(obj))
			case "there":
				assert.NoError(t, s.Create(obj))
			case "late":
				assert.NoError(t, s.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name: r.Namespace}}))
			}
			return nil
		},
	}}})
	require.NoError(t, s.Create(configMap("default", "gone")))
	assert.Equal(t, 404, send(t, s, "PATCH", configMaps+"/gone", "application/merge-patch+json",
		`{"data":{"a":"b"}}`).code)
	assert.Equal(t, 409, send(t, s, "POST", configMaps, "", `{"metadata":{"name":"there"}}`).code)
	require.NoError(t, s.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	require.NoError(t, s.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "held", Finalizers: []string{"example.com/hold"}}}))
	got := send(t, s, "POST", "/api/v1/namespaces/n/configmaps", "", `{"metadata":{"name":"late"}}`)
	assert.Equal(t, 403, got.code, got.body)
}

// Warnings are headers of the answer; a denial has the code and message that the hook gives.
func TestAdmission_Answers(t *testing.T) {
	s := start(t, apitest.Options{Admission: []apitest.AdmissionHook{{Name: "strict.example.com",
		Review: func(_ context.Context,
			r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{
				Allowed: r.Operation != admissionv1.Delete, Warnings: []string{"old \"field\""},
				Result: &metav1.Status{Code: http.StatusForbidden, Message: "keep it"},
			}
		},
	}}})
	got := send(t, s, "POST", configMaps, "", `{"metadata":{"name":"x"}}`)
	assert.Equal(t, 201, got.code)
	assert.Equal(t, []string{`299 - "old \"field\""`}, got.head.Values("Warning"))
	for _, path := range []string{configMaps + "/x", configMaps} {
		got = send(t, s, "DELETE", path, "", "")
		assert.Equal(t, 403, got.code)
		assert.Contains(t, got.body,
			`admission webhook \"strict.example.com\" denied the request: keep it`)
	}
	assert.Equal(t, 404, send(t, s, "DELETE", configMaps+"/absent", "", "").code)
}

// A webhook that this server cannot ask is an error of the write, unless its failurePolicy ignores
// that. matchConditions are never ignored.
func TestWebhook_ThatCannotBeAsked(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	hook := func(name, policy, more string) string {
		return `{"metadata":{"name":"` + name + `"},"webhooks":[{"name":"` + name + `.example.com",
			"clientConfig":{"service":{"namespace":"default","name":"a"}},
			"failurePolicy":"` + policy + `","sideEffects":"None","admissionReviewVersions":["v1"],"rules":[{"operations":["*"],
			"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]` + more + `}]}`
	}
	const hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	for _, test := range []struct {
		policy, more string
		code         int
		text         string
	}{
		{"Fail", "", 500, "this server has no network of services: set clientConfig.url"},
		{"Ignore", "", 201, ""},
		{"Fail", `,"objectSelector":{"matchLabels":{"a":"b"}}`, 201, ""},
		{"Fail", `,"namespaceSelector":{"matchLabels":{"a":"b"}}`, 201, ""},
		{"Ignore", `,"matchConditions":[{"name":"a","expression":"true"}]`, 500,
			"this server does not evaluate matchConditions"},
	} {
		got := send(t, s, "POST", hooks, "", hook("w", test.policy, test.more))
		require.Equal(t, 201, got.code, got.body)
		got = send(t, s, "POST", configMaps+"?dryRun=All", "", `{"metadata":{"name":"x"}}`)
		assert.Equal(t, test.code, got.code, got.body)
		assert.Contains(t, got.body, test.text)
		assert.Equal(t, 200, send(t, s, "DELETE", hooks+"/w", "", "").code)
	}
}

// A client that goes away ends the wait for a webhook.
func TestWebhook_ClientGoesAway(t *testing.T) {
	called, ended := make(chan struct{}), make(chan struct{})
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&admissionv1.AdmissionReview{}) // to see the client go
		close(called)
		<-r.Context().Done()
		close(ended)
	}))
	defer webhook.Close()
	s := start(t, apitest.Options{})
	got := send(t, s, "POST",
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "", fmt.Sprintf(
			`{"metadata":{"name":"w"},"webhooks":[{"name":"w.example.com","clientConfig":{"url":%q,
			"caBundle":%q},"sideEffects":"None","admissionReviewVersions":["v1"],"rules":[{"operations":["CREATE"],"apiGroups":["*"],
			"apiVersions":["*"],"resources":["*"]}]}]}`, webhook.URL,
			base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{
				Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw,
			}))))
	require.Equal(t, 201, got.code, got.body)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-called
		cancel()
	}()
	request, err := http.NewRequestWithContext(ctx, "POST", s.URL+configMaps,
		strings.NewReader(`{"metadata":{"name":"x"}}`))
	require.NoError(t, err)
	_, err = s.Client().Do(request)
	require.ErrorIs(t, err, context.Canceled)
	<-ended
}
