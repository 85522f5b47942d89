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
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// An apply or PUT that creates is not stored where nothing may be created any more: in a namespace
// that terminates, and as an object of a kind that is gone.
func TestAdmission_NothingIsCreatedInWhatHasGone(t *testing.T) {
	var s *apitest.Server
	s = start(t, apitest.Options{Admission: []apitest.AdmissionHook{{Name: "busy",
		Review: func(_ context.Context,
			r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			if r.Kind.Kind == "Gadget" {
				assert.NoError(t, s.Delete(gadgets(t,
					`[{"name":"v1","served":true,"storage":true}]`)))
			} else if r.Kind.Kind == "Lease" {
				assert.NoError(t, s.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
					Name: r.Namespace}}))
			}
			return nil
		},
	}}})
	require.NoError(t, s.Create(gadgets(t, `[{"name":"v1","served":true,"storage":true}]`)))
	got := send(t, s, "PATCH", "/apis/example.org/v1/gadgets/g?fieldManager=m", applyType,
		`{"apiVersion":"example.org/v1","kind":"Gadget","metadata":{"name":"g"}}`)
	assert.Equal(t, 404, got.code, got.body)

	require.NoError(t, s.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	require.NoError(t, s.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "held", Finalizers: []string{"example.com/hold"}}}))
	got = send(t, s, "PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "",
		`{"metadata":{"name":"l"}}`)
	assert.Equal(t, 403, got.code, got.body)
}

// A hook that panics, or ends its goroutine as require does, ends its request alone.
func TestAdmission_HookPanics(t *testing.T) {
	s := start(t, apitest.Options{Admission: []apitest.AdmissionHook{{Name: "panics", Mutates: true,
		Review: func(_ context.Context,
			r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			switch r.Name {
			case "bad":
				panic(http.ErrAbortHandler) // net/http does not log it
			case "end":
				runtime.Goexit()
			}
			return nil
		},
	}}})
	for _, name := range []string{"bad", "end"} {
		require.NoError(t, s.Create(configMap("default", name)))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		request, err := http.NewRequestWithContext(ctx, "PATCH", s.URL+configMaps+"/"+name,
			strings.NewReader(`{"data":{"a":"b"}}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/merge-patch+json")
		_, err = s.Client().Do(request)
		assert.Error(t, err)
		cancel()
		require.NoError(t, s.Delete(configMap("default", name)), "the server still serves")
	}
}

// A patch cannot move an object to another name or namespace.
func TestAdmission_PatchMovesNothing(t *testing.T) {
	patch := ""
	json := admissionv1.PatchTypeJSONPatch
	s := start(t, apitest.Options{Admission: []apitest.AdmissionHook{{Name: "moves", Mutates: true,
		Review: func(context.Context,
			*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{Allowed: true, PatchType: &json,
				Patch: []byte(`[{"op":"add","path":"/metadata/` + patch + `","value":"other"}]`)}
		},
	}}})
	require.NoError(t, s.Create(configMap("default", "x")))
	require.NoError(t, s.Create(configMap("default", "other")))
	for _, patch = range []string{"name", "namespace"} {
		got := send(t, s, "PATCH", configMaps+"/x", "application/merge-patch+json",
			`{"data":{"a":"b"}}`)
		assert.Equal(t, 400, got.code, got.body)
		got = send(t, s, "PATCH", configMaps+"/new?fieldManager=m", applyType,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}`)
		assert.Equal(t, 400, got.code, got.body)
	}
	got := send(t, s, "POST", configMaps, "", `{"metadata":{"name":"y"}}`)
	assert.Equal(t, 400, got.code, got.body)
	items, err := s.List("configmaps", "")
	require.NoError(t, err)
	require.Len(t, items, 2)
	assert.Nil(t, items[0].Object["data"])
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
