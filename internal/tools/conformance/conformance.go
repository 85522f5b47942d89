// SPDX-License-Identifier: Apache-2.0

// Package conformance checks that a server answers as a Kubernetes API server does.
//
//	testdata/conformance/*.txt -> [conformance] -> a real kube-apiserver, or apitest
//
// The transcripts are recorded from a real kube-apiserver (see e2e) and replayed on every other
// target. clients.go adds tests that cannot be written as HTTP requests: client-go's own clients
// must work.
//
// Read a transcript first, then player.go (its commands) and normalize.go (what is not compared);
// then go test -v ./internal/tools/conformance. Goroutines: one for each open watch, until it is
// closed. Locking: none; one transcript, one goroutine.
package conformance

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/tools/transcript"
)

// Recorded is the variant that the transcripts were recorded from: the real server.
const Recorded = transcript.Ours

// Target is a server to test.
type Target struct {
	// Variant names the target in transcripts: Recorded, or the heading for its deviations.
	Variant string
	// Config connects to the server with full access.
	Config *rest.Config
	// Expire makes the server forget its history: every earlier watch, exact list and continue
	// token gets 410 Gone. It may restart the server. It is not called while another test runs.
	Expire func(t *testing.T)
	// Folder contains the transcripts, and widgets.json, the custom resource that they use.
	Folder string
}

// Run plays every transcript of a target with the default feature gates, then runs the tests of
// client-go's clients on it.
func Run(t *testing.T, target Target) {
	client, err := rest.HTTPClientFor(target.Config)
	require.NoError(t, err)
	defineWidgets(t, target)
	files := transcript.Glob(t, filepath.Join(target.Folder, "*.txt"))
	t.Run("together", func(t *testing.T) { run(t, target, client, files, false) })
	t.Run("alone", func(t *testing.T) { run(t, target, client, files, true) })
}

// RunFolder plays the transcripts in a folder of Target.Folder, which are of a server that is not
// the default one: sharded has the feature gate ShardedListAndWatch; collected has the namespace
// controller and the garbage collector; schemas follows the schemas of custom kinds.
func RunFolder(t *testing.T, target Target, folder string) {
	client, err := rest.HTTPClientFor(target.Config)
	require.NoError(t, err)
	defineWidgets(t, target)
	for _, file := range transcript.Glob(t, filepath.Join(target.Folder, folder, "*.txt")) {
		t.Run(file.Name, func(t *testing.T) {
			t.Parallel()
			file.Play(t, target.Variant, newPlayer(t, target, client, file.Name).exec)
		})
	}
}

// run runs the tests that call Expire, one after the other because they need the server alone; or
// all others, in parallel.
func run(t *testing.T, target Target, client *http.Client, files []*transcript.File, alone bool) {
	each := func(name string, needsItAlone bool, test func(t *testing.T)) {
		if needsItAlone == alone {
			t.Run(name, func(t *testing.T) {
				if !alone {
					t.Parallel()
				}
				test(t)
			})
		}
	}
	for _, file := range files {
		each(file.Name, file.Name == "expired", func(t *testing.T) {
			file.Play(t, target.Variant, newPlayer(t, target, client, file.Name).exec)
		})
	}
	for _, test := range clientTests {
		each("client-go "+test.name, test.expires, func(t *testing.T) { test.run(t, target) })
	}
}

// defineWidgets creates the custom resource and waits until it is served.
func defineWidgets(t *testing.T, target Target) {
	definition, err := os.ReadFile(filepath.Join(target.Folder, "widgets.json"))
	require.NoError(t, err)
	clientset, err := kubernetes.NewForConfig(target.Config)
	require.NoError(t, err)
	client := clientset.RESTClient()
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	err = client.Post().AbsPath(path).Body(definition).Do(t.Context()).Error()
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	require.Eventually(t, func() bool {
		return client.Get().AbsPath("/apis/example.com/v1/widgets").Do(t.Context()).Error() == nil
	}, patience, 20*time.Millisecond)
}
