// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The kubeconfig that it writes leads to a server with the objects of the files, and with the flags
// after "--". It stops with the context.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	stdout, print := io.Pipe()
	code := make(chan int)
	var stderr bytes.Buffer
	go func() {
		code <- run(ctx, []string{"--kubeconfig", kubeconfig, "--crds", "../../testdata/crds",
			"--load", "../../testdata/objects.yaml", "--",
			"--disable-admission-plugins=ServiceAccount,NamespaceLifecycle"},
			strings.NewReader(""), print, &stderr)
		_ = print.Close()
	}()
	first := make([]byte, 1000)
	n, err := stdout.Read(first)
	require.NoError(t, err, "%s", &stderr)
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	assert.Contains(t, string(first[:n]), "Serving Kubernetes 1.37.2 on "+config.Host)
	objects := kubernetes.NewForConfigOrDie(config).CoreV1()
	settings, err := objects.ConfigMaps("workshop").Get(ctx, "settings", metav1.GetOptions{})
	require.NoError(t, err)
	settings.Namespace, settings.ResourceVersion, settings.UID = "nowhere", "", ""
	_, err = objects.ConfigMaps("nowhere").Create(ctx, settings, metav1.CreateOptions{})
	require.NoError(t, err, "without NamespaceLifecycle")
	stop()
	assert.Equal(t, 0, <-code)
}

func TestRun_Errors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"version":  {[]string{"--kubernetes", "1.2"}, 2, `version "1.2": want one of 1.37.2`},
		"flag":     {[]string{"--nonsense"}, 2, "-nonsense"},
		"argument": {[]string{"a"}, 2, `"a" is no flag of kube-apiserver`},
		"help":     {[]string{"--help"}, 0, "Usage: realserver"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := run(t.Context(), test.args, strings.NewReader(""), io.Discard, &stderr)
			assert.Equal(t, test.code, code)
			assert.Contains(t, stderr.String(), test.says)
		})
	}
}
