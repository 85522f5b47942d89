// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/apitest"
)

// busy is a schema that calls a function with each object that it prunes.
type busy struct {
	anything
	prunes func(obj map[string]any)
}

func (b busy) Definitions() apitest.Schema { return anything{} }

func (b busy) Compile(map[string]any) (map[string]apitest.Schema, error) {
	return map[string]apitest.Schema{"v1": b}, nil
}

func (b busy) Prune(obj map[string]any) ([]error, error) {
	b.prunes(obj)
	return nil, nil
}

// A patch that takes long to compute does not keep other writes waiting, not even of the same
// object: then it is computed again.
func TestPatch_OthersWriteMeanwhile(t *testing.T) {
	var s *apitest.Server
	var computed atomic.Int32
	s = start(t, apitest.Options{Schemas: busy{prunes: func(obj map[string]any) {
		if obj["mine"] == nil || computed.Add(1) > 1 {
			return
		}
		written := make(chan error, 1)
		go func() {
			meanwhile := gadget(t, "v1", "")
			if err := s.Get(meanwhile); err != nil {
				written <- err
				return
			}
			meanwhile.Object["theirs"] = int64(2)
			written <- s.Update(meanwhile)
		}()
		select {
		case err := <-written:
			assert.NoError(t, err)
		case <-time.After(10 * time.Second):
			assert.Fail(t, "another write waits for the patch")
		}
	}}})
	require.NoError(t, s.Create(gadgets(t, `[{"name":"v1","served":true,"storage":true}]`)))
	require.NoError(t, s.Create(gadget(t, "v1", `,"theirs":1`)))
	got := send(t, s, "PATCH", "/apis/example.org/v1/gadgets/a", mergePatch, `{"mine":1}`)
	require.Equal(t, 200, got.code, got.body)
	assert.Contains(t, got.body, `"mine":1,"theirs":2`)
}

// A hook that mutates is asked about deletes. If the object changes meanwhile, it is asked again
// about the new one.
func TestAdmission_Deletes(t *testing.T) {
	var s *apitest.Server
	var seen []string
	s = start(t, apitest.Options{Scheme: scheme.Scheme, Admission: []apitest.AdmissionHook{{
		Name: "keep.example.com", Mutates: true,
		Review: func(_ context.Context,
			r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			if r.Operation != admissionv1.Delete {
				return nil
			}
			seen = append(seen, fmt.Sprint(r.Name, r.Namespace, r.Object.Raw == nil))
			if strings.Contains(string(r.OldObject.Raw), `"keep"`) {
				return &admissionv1.AdmissionResponse{}
			}
			if r.Name == "changes" {
				obj := configMap("default", "changes")
				obj.Data = map[string]string{"keep": "1"}
				assert.NoError(t, s.Update(obj))
			}
			return nil
		},
	}}})
	for _, name := range []string{"a", "changes"} {
		require.NoError(t, s.Create(configMap("default", name)))
	}
	assert.Equal(t, 200, send(t, s, "DELETE", configMaps+"/a", "", "").code)
	assert.Equal(t, 400, send(t, s, "DELETE", configMaps+"/changes", "", "").code)
	assert.Equal(t, 400, send(t, s, "DELETE", configMaps, "", "").code)
	assert.Equal(t, []string{"adefaulttrue", "changesdefaulttrue", "changesdefaulttrue",
		"defaulttrue"}, seen)
}
