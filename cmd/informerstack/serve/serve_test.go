// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

const (
	definitionText = `
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
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            default: {}
            properties: {size: {type: integer, maximum: 5, default: 2}}
`
	objectsText = `
apiVersion: example.com/v1
kind: Gadget
metadata: {name: first}
---
# nothing
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: workshop}
- apiVersion: example.com/v1
  kind: Gadget
  metadata: {name: second, namespace: workshop}
`
)

// write writes a file into a folder, and returns its name.
func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	file := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// The server has the objects of the files, and the kubeconfig leads to it. It ends with the
// command.
func TestServe_LoadsFiles(t *testing.T) {
	folder, crds := t.TempDir(), t.TempDir()
	write(t, crds, "gadgets.yaml", definitionText)
	write(t, crds, "kustomization.yaml", "resources: [gadgets.yaml]")
	write(t, crds, "README.md", "no YAML: [")
	kubeconfig := filepath.Join(folder, "kubeconfig")
	p := clitest.Start(t, []*cobra.Command{NewCommand()}, "serve", "--kubeconfig", kubeconfig,
		"--crds", crds, "--load", write(t, folder, "objects.yaml", objectsText))
	p.Prints(t, "kubectl --kubeconfig "+kubeconfig)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	assert.Contains(t, p.Stdout.String(), "Serving the Kubernetes API on "+config.Host+".")
	gadgets := dynamic.NewForConfigOrDie(config).Resource(
		schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"})
	list, err := gadgets.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var keys []string
	for _, gadget := range list.Items {
		keys = append(keys, gadget.GetNamespace()+"/"+gadget.GetName())
	}
	assert.Equal(t, []string{"default/first", "workshop/second"}, keys)
	assert.Equal(t, map[string]any{"size": int64(2)}, list.Items[0].Object["spec"])
	large := list.Items[0].DeepCopy()
	large.Object["spec"] = map[string]any{"size": int64(6)}
	_, err = gadgets.Namespace("default").Update(t.Context(), large, metav1.UpdateOptions{})
	assert.ErrorContains(t, err, "spec.size in body should be less than or equal to 5")
	p.Stops(t)
	_, err = gadgets.List(t.Context(), metav1.ListOptions{})
	assert.Error(t, err)
}

// Definitions in the files of --load are created first, wherever they are.
func TestServe_LoadsDefinitionsFirst(t *testing.T) {
	folder := t.TempDir()
	p := clitest.Start(t, []*cobra.Command{NewCommand()}, "serve",
		"--kubeconfig", filepath.Join(folder, "kubeconfig"),
		"--load", write(t, folder, "objects.yaml", objectsText),
		"--load", write(t, folder, "gadgets.yaml", definitionText))
	p.Prints(t, "Serving")
	p.Stops(t)
}

// With --rbac, the kubeconfig is an administrator's, and other users need roles.
func TestServe_RBAC(t *testing.T) {
	for _, flags := range [][]string{nil, {"--rbac"}} {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		args := append([]string{"serve", "--kubeconfig", kubeconfig}, flags...)
		p := clitest.Start(t, []*cobra.Command{NewCommand()}, args...)
		p.Prints(t, "kubectl --kubeconfig "+kubeconfig)
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		require.NoError(t, err)
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		_, err = dynamic.NewForConfigOrDie(config).Resource(pods).List(t.Context(),
			metav1.ListOptions{})
		require.NoError(t, err)
		config.Impersonate.UserName = "ann"
		_, err = dynamic.NewForConfigOrDie(config).Resource(pods).List(t.Context(),
			metav1.ListOptions{})
		assert.Equal(t, len(flags) > 0, apierrors.IsForbidden(err), "%v", err)
		p.Stops(t)
	}
}

// An error names the flag, or the file and the object.
func TestServe_Errors(t *testing.T) {
	folder := t.TempDir()
	objects := write(t, folder, "objects.yaml", objectsText)
	kindless := write(t, folder, "kindless.yaml", "resources: [a]")
	broken := write(t, folder, "broken.yaml", "a: [")
	missing := filepath.Join(folder, "missing")
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"address": {[]string{"--listen", "0.0.0.0:1"}, cli.Usage,
			[]string{`--listen "0.0.0.0:1": want a loopback address`}},
		"no kubeconfig": {[]string{"--kubeconfig", ""}, cli.Usage,
			[]string{"--kubeconfig is empty"}},
		"not written": {[]string{"--kubeconfig", folder}, cli.Failed,
			[]string{"--kubeconfig " + folder}},
		"version": {[]string{"--kubernetes", "1.36.3"}, cli.Usage,
			[]string{"--kubernetes has no effect without --real"}},
		"missing file": {[]string{"--load", missing}, cli.Failed,
			[]string{missing + ": no such file"}},
		"no definition": {[]string{"--crds", objects}, cli.Failed,
			[]string{"no CustomResourceDefinition in", objects}},
		"no kind": {[]string{"--load", kindless}, cli.Failed, []string{kindless, "has no kind"}},
		"no YAML": {[]string{"--load", broken}, cli.Failed, []string{broken}},
		"unknown kind": {[]string{"--load", objects}, cli.Failed,
			[]string{objects + ": Gadget first: "}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"serve", "--kubeconfig", filepath.Join(folder, "kubeconfig")},
				test.args...)
			p := clitest.Start(t, []*cobra.Command{NewCommand()}, args...)
			p.Exits(t, test.code)
			for _, text := range test.says {
				assert.Contains(t, p.Stderr.String(), text)
			}
		})
	}
}
