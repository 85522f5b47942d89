// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"example.com/informerstack/e2e/cluster"
)

// sample is a running sample-controller, with a namespace for its Foos.
type sample struct {
	*debugger
	gate      *gate
	log       *logPipe
	namespace string
	foos      dynamic.ResourceInterface
}

// Kubernetes' own example of a controller, without a change to it, answers where the keys of its
// Foos are, while permissions, the server, a Deployment and its log are taken from it.
func TestSwapped_SampleController_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	const main = "k8s.io/sample-controller"
	goWork := swap(t, "samplecontroller", "--devtools", "127.0.0.1:0")
	built := compile(t, "samplecontroller", goWork, main)
	servers := cluster.New(t, cluster.Options{})
	s := &sample{gate: newGate(t, servers), log: newLogPipe(t)}
	crd := filepath.Join(moduleFolder(t, "samplecontroller", main), "artifacts", "examples",
		"crd-status-subresource.yaml")
	define(t, servers, crd)
	s.namespace = cluster.NewNamespace(t, s.gate.admin)
	foos, err := dynamic.NewForConfig(servers.Config(cluster.AdminToken))
	require.NoError(t, err)
	s.foos = foos.Resource(schema.GroupVersionResource{Group: "samplecontroller.k8s.io",
		Version: "v1alpha1", Resource: "foos"}).Namespace(s.namespace)

	s.gate.allow(sampleRules[1:]...)
	run(t, servers, "sample-controller", s.log.script(built), "--kubeconfig",
		s.gate.kubeconfig(), "-v=4")
	s.debugger = newDebugger(t, s.log)
	play(t, s, func(t *testing.T) { s.t, s.gate.t = t, t }, []step[*sample]{
		{"no permission at the start", (*sample).mayNotList},
		{"a Foo becomes a Deployment", (*sample).works},
		{"a Deployment of no Foo", (*sample).filters},
		{"a Deployment that is not its own", (*sample).retries},
		{"an answer of the server that does not come", (*sample).hangs},
		{"a log that is not read", (*sample).blocks},
		{"permissions are taken", (*sample).mayNoLonger},
		{"the server stops", (*sample).loses},
	})
}

// sampleRules are the permissions that sample-controller needs; the first are those on Foos.
var sampleRules = []rbacv1.PolicyRule{
	rule("samplecontroller.k8s.io", "foos foos/status", "get list watch update"),
	rule("apps", "deployments", "get list watch create update"),
	rule("", "events", "create patch"),
}

const fooInformer, deploymentInformer = `informer SharedIndexInformer \*v1alpha1\.Foo`,
	`informer SharedIndexInformer \*v1\.Deployment`

const fooQueue = `queue main\.NewController`

func (s *sample) key(name string) string { return s.namespace + "/" + name }

func (s *sample) mayNotList() {
	s.createFoo("a", "web-a")
	s.answers(s.key("a"), `^`+fooInformer+` is backing off and has no list yet: failed to list `+
		`\S+: foos.samplecontroller.k8s.io is forbidden: User "weak" cannot list`)
	s.gate.allow(sampleRules...)
}

func (s *sample) works() {
	s.answers(s.key("a"), `^`+fooQueue+` reconciled \S+/a \S+ ago, and it has not changed since: `+
		`it ended with Forget in \S+, because of: `)
	s.patchDeployment("web-a", `{"spec": {"replicas": 7}}`)
	s.hasReplicas("web-a", 1) // as the Foo says
	s.answers(s.key("a"), `because of: update of \S+/web-a from resourceVersion \d+ to \d+ `+
		`by \S+ \(changed: .*\.spec\.replicas.*\), `+deploymentInformer)
	s.answers(s.key("missing"), `^no informer has \S+/missing \(`)
	s.answers("elsewhere/a", `^no informer has elsewhere/a \(.*\n  there is another namespace `+
		`with this name: `+s.key("a")+`\n`)
}

func (s *sample) filters() {
	s.createDeployment("alone")
	s.answers(s.key("alone"), `^a handler was called \S+ ago, and no Add was seen within the `+
		`call: add of \S+/alone `+
		`at resourceVersion \d+, `+deploymentInformer+`, handler main\.`)
}

// The Deployment of its name belongs to no Foo: each attempt fails, later and later.
func (s *sample) retries() {
	s.createFoo("b", "alone")
	for _, failures := range []string{`\d\d`, `1[1-9]`} { // the eleventh is due after 5 s
		s.answers(s.key("b"), `^\S+/b joins `+fooQueue+` in \S+, at \S+, after `+failures+
			` calls of AddRateLimited, the last error \S+ ago: Resource "alone" already exists `+
			`and is not managed `+
			`by Foo\n  `+fooInformer+` has \S+/b at resourceVersion \d+`)
	}
	require.NoError(s.t, s.foos.Delete(s.t.Context(), "b", metav1.DeleteOptions{}))
}

// Both workers wait for an answer of the server; the third Foo waits for a worker.
func (s *sample) hangs() {
	release := s.gate.hold(http.MethodPost, "/deployments")
	defer release()
	for _, name := range []string{"c", "d"} {
		s.createFoo(name, "web-"+name)
		s.answers(s.key(name), `^a worker of `+fooQueue+` has had \S+/`+name+` for \S+, and has `+
			`not called Done.*  its goroutine: select.*    main\.\(\*Controller\)\.syncHandler `+
			`controller\.go:\d+\n`)
	}
	s.createFoo("e", "web-e")
	s.answers(s.key("e"), `^\S+/e is number 1 of 1 in `+fooQueue+`; its workers have 2 other `+
		`keys, the longest for \S+\n`)
	s.answers("", `(^|\n)finding: a worker of `+fooQueue+` has had \S+/c for \S+\n`)
	release()
	s.answers(s.key("e"), `^`+fooQueue+` reconciled \S+/e \S+ ago, `)
}

// The handler of Deployments logs each one, and so do the workers; that of Foos does not.
func (s *sample) blocks() {
	release := s.log.block()
	defer release()
	s.patchDeployment("alone", `{"metadata": {"labels": {"a": "b"}}}`)
	s.answers(s.key("alone"), `^`+deploymentInformer+` has \S+/alone at resourceVersion \d+, and `+
		`its handler main\.\S+ is 1 call behind, the oldest for \S+: that of \S+/alone may be `+
		`one of them`)
	s.answers("", `(^|\n)finding: a call of handler main\.\S+ of `+deploymentInformer+` has not `+
		`returned for \S+; calls that wait: 0\n`)
	release()
	s.answers(s.key("alone"), `^a handler was called \S+ ago, and no Add was seen within the `+
		`call: update of `)
}

// A worker notices a permission that is missing at once, an informer when its watch has ended.
func (s *sample) mayNoLonger() {
	s.gate.allow(rule("samplecontroller.k8s.io", "foos", "get list watch"),
		rule("apps", "deployments", "get list watch"), rule("", "events", "create patch"))
	s.createFoo("f", "web-f")
	s.answers(s.key("f"), `^\S+/f joins `+fooQueue+` in \S+, at \S+, after \d+ calls? of `+
		`AddRateLimited, the last error \S+ ago: deployments\.apps is forbidden: User "weak" cannot create resource`)
	s.gate.allow()
	s.gate.cut()
	s.answers(s.key("f"), fooInformer+` may be old: \d+ failures? in a row, the last one .* is `+
		`forbidden: User "weak" cannot `)
	s.gate.allow(sampleRules...)
	s.answers(s.key("f"), `^`+fooQueue+` reconciled \S+/f \S+ ago, `)
	s.hasReplicas("web-f", 1)
}

func (s *sample) loses() {
	s.gate.loseServer(func() {
		s.answers(s.key("a"), fooInformer+` may be old: \d+ failures? in a row, the last one `+
			`.*connection refused`)
		s.answers("", `(^|\n)finding: `+deploymentInformer+` failed \d+ times in a row, the last `+
			`time with: .*connection refused`)
	})
}

func (s *sample) createFoo(name, deployment string) {
	s.t.Helper()
	foo := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"deploymentName": deployment, "replicas": int64(1)},
	}}
	_, err := s.foos.Create(s.t.Context(), foo, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// createDeployment creates one that no Foo owns.
func (s *sample) createDeployment(name string) {
	s.t.Helper()
	labels := map[string]string{"app": name}
	_, err := s.gate.admin.AppsV1().Deployments(s.namespace).Create(s.t.Context(),
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{
						{Name: "c", Image: "i"}}},
				},
			},
		}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

func (s *sample) patchDeployment(name, patch string) {
	s.t.Helper()
	_, err := s.gate.admin.AppsV1().Deployments(s.namespace).Patch(s.t.Context(), name,
		"application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

func (s *sample) hasReplicas(deployment string, want int32) {
	s.t.Helper()
	require.EventuallyWithT(s.t, func(t *assert.CollectT) {
		has, err := s.gate.admin.AppsV1().Deployments(s.namespace).Get(s.t.Context(), deployment,
			metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, want, *has.Spec.Replicas)
	}, patience, 50*time.Millisecond)
}
