// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/apitest"
)

func TestStart_InYourOwnTests(t *testing.T) {
	server := apitest.Start(t, apitest.Options{}, configMap("default", "a", "color", "red"))
	client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
	a, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	a.Data["color"] = "blue"
	_, err = client.Update(t.Context(), a, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "[get configmaps default/a 200 update configmaps default/a 200]",
		fmt.Sprint(server.Requests(apitest.Match{})))
}

// The same call works in a bubble: a day passes at once, and nothing outlives the test.
func TestStart_InABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.Start(t, apitest.Options{})
		client := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps("default")
		w, err := client.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		time.Sleep(24 * time.Hour)
		require.NoError(t, server.Create(configMap("default", "a")))
		for open := true; open; {
			_, open = <-w.ResultChan() // the server ends each watch within an hour
		}
		assert.Len(t, server.Requests(apitest.Match{Verb: "watch", Resource: "configmaps"}), 1)
	})
}

// With an address, other programs reach the server.
func TestStart_ListensAtAnAddress(t *testing.T) {
	server := apitest.Start(t, apitest.Options{Address: "127.0.0.1:0"})
	assert.Contains(t, server.URL, "http://127.0.0.1:")
	assert.Equal(t, server.URL, server.Config().Host)
}

// recorder is a test that notes what Start reports.
type recorder struct {
	testing.TB
	failed   bool
	logged   string
	cleanups []func()
}

func (r *recorder) Cleanup(f func())  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool      { return r.failed }
func (r *recorder) Log(values ...any) { r.logged += fmt.Sprintln(values...) }

// The log of a test that fails has the last requests. That of another test has nothing.
func TestStart_ShowsTheRequestsOfAFailure(t *testing.T) {
	for _, failed := range []bool{false, true} {
		r := &recorder{TB: t, failed: failed}
		server := apitest.Start(r, apitest.Options{})
		for range 101 {
			send(t, server, "GET", "/api/v1/namespaces/default/pods/a", "", "")
		}
		send(t, server, "GET", "/nothing", "", "")
		for _, f := range r.cleanups {
			f()
		}
		if !failed {
			assert.Empty(t, r.logged)
			continue
		}
		assert.Regexp(t, `^the last 100 of 102 requests:\n  [0-9:.]+ get pods default/a 404\n`,
			r.logged)
		assert.Regexp(t, `get /nothing 404\n$`, r.logged)
	}
}

const gadgetsYAML = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Definitions are created first, and status is kept.
func TestLoad(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	crds := write("gadgets.yaml", gadgetsYAML)
	files := write("objects.yaml", `
{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}, status: {phase: Ready}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: workshop}}
---
{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b, namespace: workshop}}
`)
	for _, crds := range [][]string{{crds}, nil} {
		server := apitest.Start(t, apitest.Options{})
		loaded := []string{files}
		if crds == nil {
			loaded = append(loaded, filepath.Join(folder, "gadgets.yaml"))
		}
		require.NoError(t, server.Load(crds, loaded))
		items, err := server.List("gadgets", "")
		require.NoError(t, err)
		assert.Equal(t, `apiVersion: example.com/v1
kind: Gadget
metadata:
  generation: 1
  name: a
  namespace: default
status:
  phase: Ready
---
apiVersion: example.com/v1
kind: Gadget
metadata:
  generation: 1
  name: b
  namespace: workshop
`, apitest.Snapshot(items))
	}
	server := apitest.Start(t, apitest.Options{})
	err := server.Load(nil, []string{files})
	assert.ErrorContains(t, err, "load objects: "+files+": Gadget a: create object: no kind")
	assert.ErrorContains(t, server.Load(nil, []string{folder + "/missing"}), "no such file")
}

// Two runs differ in uids, versions and times; their snapshots do not. A change is visible.
func TestSnapshot_OfEverything(t *testing.T) {
	run := func(color string, earlierWrites int) string {
		server := apitest.Start(t, apitest.Options{ManagedFields: true})
		for range earlierWrites {
			require.NoError(t, server.Create(configMap("default", "earlier")))
			require.NoError(t, server.Delete(configMap("default", "earlier")))
		}
		owner := configMap("default", "owner")
		require.NoError(t, server.Create(owner))
		now := time.Now().Format(time.RFC3339)
		owned := configMap("default", "owned", "color", color, "at", now)
		owned.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
		require.NoError(t, server.Create(owned))
		require.NoError(t, server.Create(&corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "e"},
			FirstTimestamp: metav1.Now(),
			InvolvedObject: corev1.ObjectReference{Name: "owned", UID: owned.UID,
				ResourceVersion: owned.ResourceVersion}}))
		items, err := server.List("", "")
		require.NoError(t, err)
		assert.Len(t, items, 7, "with four namespaces")
		text := apitest.Snapshot(items)
		slices.Reverse(items)
		assert.Equal(t, text, apitest.Snapshot(items))
		assert.NotEmpty(t, items[0].GetUID(), "the objects stay as they are")
		assert.NotContains(t, text, owned.UID)
		assert.NotContains(t, text, "managedFields")
		assert.NotContains(t, text, "creationTimestamp")
		items, err = server.List("", "default")
		require.NoError(t, err)
		assert.Len(t, items, 3)
		return text
	}
	red := run("red", 0)
	assert.Contains(t, red, "  at: TIME\n  color: red\n")
	assert.Contains(t, red, "firstTimestamp: TIME\n")
	assert.Contains(t, red, "  ownerReferences:\n  - apiVersion: v1\n    kind: ConfigMap\n"+
		"    name: owner\n")
	assert.Equal(t, red, run("red", 3))
	assert.NotEqual(t, red, run("blue", 0))
}

// Each object is listed once, even if its kind has two versions.
func TestList_EverythingOnce(t *testing.T) {
	definition := filepath.Join(t.TempDir(), "gadgets.yaml")
	require.NoError(t, os.WriteFile(definition, []byte(gadgetsYAML+`
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`), 0o600))
	server := apitest.Start(t, apitest.Options{})
	require.NoError(t, server.Load([]string{definition}, nil))
	require.NoError(t, server.Create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v2", "kind": "Gadget",
		"metadata": map[string]any{"namespace": "default", "name": "a"}}}))
	items, err := server.List("", "default")
	require.NoError(t, err)
	assert.Len(t, items, 1)
	_, err = server.List("widgets", "")
	assert.ErrorContains(t, err, `no resource "widgets" is served`)
}

// A field that only has such a name stays.
func TestSnapshot_KeepsFieldsOfOtherTypes(t *testing.T) {
	text := apitest.Snapshot([]unstructured.Unstructured{{Object: map[string]any{
		"spec": map[string]any{"uid": int64(7), "resourceVersion": map[string]any{"type": "x"}}}}})
	assert.Equal(t, "spec:\n  resourceVersion:\n    type: x\n  uid: 7\n", text)
}
