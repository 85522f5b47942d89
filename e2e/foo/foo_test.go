// SPDX-License-Identifier: Apache-2.0

// Package foo_test shows that a controller is the same with client-go's imports and with compat's:
// its text, and its effect on a server.
//
// Read clientgo/controller.go, the controller, then foo_test.go, its behaviour, and
// imports_test.go.
package foo_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/e2e/foo/api"
	clientgo "example.com/informerstack/e2e/foo/clientgo"
	compat "example.com/informerstack/e2e/foo/compat"
)

// variants are the two copies of the controller.
var variants = []struct {
	name string
	main func(ctx context.Context, config *rest.Config, namespace string, threadiness int) error
}{
	{"client-go", clientgo.Main},
	{"compat", compat.Main},
}

// The same story on each server, with each controller: the server reaches the state that each Foo
// specifies.
func TestFoo(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) server{
		"apitest": newApitest, "kube-apiserver": newCluster,
	} {
		t.Run("server="+name, func(t *testing.T) {
			s := start(t)
			fixture.Define(t, s.config, api.CRD)
			for _, variant := range variants {
				t.Run("imports="+variant.name, func(t *testing.T) {
					w := newWorld(t, s)
					before := goroutines()
					stop := w.start(variant.main)
					for _, chapter := range chapters {
						t.Run(chapter.name, func(t *testing.T) { chapter.play(w.in(t)) })
					}
					stop()
					w.noGoroutinesBut(before)
				})
			}
		})
	}
}

// chapters are played one after the other, on one controller. Each has its own Foos.
var chapters = []struct {
	name string
	play func(w *world)
}{
	{"a Foo gets a Deployment", func(w *world) {
		w.createFoo("a", "web-a", 1)
		w.hasDeployment("web-a", 1, "a")
	}},
	{"a scaled Foo scales it", func(w *world) {
		w.createFoo("b", "web-b", 1)
		w.hasDeployment("web-b", 1, "b")
		w.scaleFoo("b", 3)
		w.hasDeployment("web-b", 3, "b")
	}},
	{"what others do to it is undone", func(w *world) {
		w.createFoo("c", "web-c", 2)
		first := w.hasDeployment("web-c", 2, "c")
		w.scaleDeployment("web-c", 7)
		w.hasDeployment("web-c", 2, "c")
		w.deleteDeployment("web-c")
		second := w.hasDeployment("web-c", 2, "c")
		assert.NotEqual(w.t, first.UID, second.UID)
	}},
	{"its status is the Foo's", func(w *world) {
		w.createFoo("d", "web-d", 3)
		w.hasDeployment("web-d", 3, "d")
		w.makeAvailable("web-d", 2)
		w.fooHasAvailable("d", 2)
		w.makeAvailable("web-d", 3)
		w.fooHasAvailable("d", 3)
	}},
	{"what belongs to others is left alone, and tried again", func(w *world) {
		theirs := w.createDeployment("web-e", 5)
		w.createFoo("e", "web-e", 1)
		w.hasEvent("e", clientgo.ErrResourceExists)
		now := w.hasDeployment("web-e", 5, "")
		assert.Equal(w.t, theirs.UID, now.UID)
		assert.Equal(w.t, theirs.Generation, now.Generation)
		// the delete does not lead the controller to its Foo: a retry finds the change
		w.deleteDeployment("web-e")
		w.hasDeployment("web-e", 1, "e")
	}},
	{"a Foo that names no Deployment waits until it does", func(w *world) {
		foo := w.createFoo("f", "", 1)
		foo.Spec.DeploymentName = "web-f"
		_, err := w.foos.Update(w.ctx, foo, metav1.UpdateOptions{})
		require.NoError(w.t, err)
		w.hasDeployment("web-f", 1, "f")
	}},
	{"a delete that the watch missed is found out", func(w *world) {
		w.createFoo("i", "web-i", 1)
		w.hasDeployment("web-i", 1, "i")
		w.makeAvailable("web-i", 1)
		w.fooHasAvailable("i", 1) // now the Deployment is in the controller's cache
		w.way.Cut()
		w.deleteDeployment("web-i")
		w.forget(w.t)
		// the watch has expired, and the object is missing in the list: handleObject gets a
		// tombstone
		w.way.Redirect("")
		w.hasDeployment("web-i", 1, "i")
	}},
	{"a deleted Foo wants nothing any more", func(w *world) {
		w.createFoo("g", "web-g", 1)
		w.hasDeployment("web-g", 1, "g")
		w.deleteFoo("g") // its Deployment stays: there is no garbage collector
		w.createFoo("h", "web-h", 1)
		// Foos arrive in order, so the controller knows that g is deleted
		w.hasDeployment("web-h", 1, "h")
		w.deleteDeployment("web-g")
		w.scaleDeployment("web-h", 9)
		w.hasDeployment("web-h", 1, "h") // the controller has received that change too
		w.hasNoDeployment("web-g")
	}},
}
