// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"fmt"
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

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// sample is a running sample-controller, with a namespace for its Foos.
type sample struct {
	*debugger
	*column
	servers   *cluster.Cluster
	gate      *gate
	log       *logPipe
	process   *cluster.Process
	forgetful string // a program with a bug
	namespace string
	foos      dynamic.ResourceInterface
}

// Kubernetes' own example of a controller, without a change to it, answers where the keys of its
// Foos are, while permissions, the server, a Deployment, its quota and its log are taken from it.
// The last step is a copy of it that forgets Done.
func TestSwapped_SampleController_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	const main = "k8s.io/sample-controller"
	goWork := swap(t, "samplecontroller", "--devtools", "127.0.0.1:0")
	built := compile(t, "samplecontroller", goWork, main)
	plant(t, goWork, "samplecontroller", main, fault{"controller.go",
		"	defer c.workqueue.Done(objRef)\n",
		"	if objRef.Name != \"forgotten\" {\n		defer c.workqueue.Done(objRef)\n	}\n"})
	servers := cluster.New(t, cluster.Options{})
	s := &sample{servers: servers, gate: newGate(t, servers), log: newLogPipe(t),
		column:    newColumn(t, "sample-controller"),
		forgetful: compile(t, "samplecontroller", goWork, main)}
	crd := filepath.Join(moduleFolder(t, "samplecontroller", "off", main), "artifacts",
		"examples", "crd-status-subresource.yaml")
	define(t, servers, crd)
	s.namespace = fixture.NewNamespace(t, s.gate.admin)
	foos, err := dynamic.NewForConfig(servers.Config(cluster.AdminToken))
	require.NoError(t, err)
	s.foos = foos.Resource(schema.GroupVersionResource{Group: "samplecontroller.k8s.io",
		Version: "v1alpha1", Resource: "foos"}).Namespace(s.namespace)

	s.gate.allow(sampleRules[1:]...)
	s.process = run(t, servers, "sample-controller", s.log.script(built), "--kubeconfig",
		s.gate.kubeconfig(), "-v=4")
	s.debugger = newDebugger(t, s.log)
	play(t, s, func(t *testing.T) { s.t, s.gate.t = t, t }, []step[*sample]{
		{"no permission at the start", (*sample).mayNotList},
		{"a Foo becomes a Deployment", (*sample).works},
		{"a healthy period", (*sample).isHealthy},
		{"a Deployment of no Foo", (*sample).filters},
		{"a Deployment that is not its own", (*sample).retries},
		{"a quota", (*sample).meetsQuota},
		{"a Deployment gets another owner", (*sample).changesOwner},
		{"an answer of the server that does not come", (*sample).hangs},
		{"a log that is not read", (*sample).blocks},
		{"permissions are taken", (*sample).mayNoLonger},
		{"the server stops", (*sample).loses},
		{"Done is forgotten", (*sample).forgets},
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
	s.asks("no permission at the start", "a", `^`+fooInformer+` is backing off and has no list yet: `)
	s.gate.allow(sampleRules...)
}

func (s *sample) works() {
	s.asks("healthy", "a", `^`+fooQueue+` reconciled \S+/a \S+ ago, and it has not changed since: `)
	s.patchDeployment("web-a", `{"spec": {"replicas": 7}}`)
	s.hasReplicas("web-a", 1) // as the Foo says
	s.answers(s.key("a"), `because of: update of \S+/web-a from resourceVersion \d+ to \d+ `+
		`by \S+ \(changed: .*\.spec\.replicas.*\), `+deploymentInformer)
	s.asks("no such object", "missing", `^no informer has \S+/missing \(`)
	s.answers("elsewhere/a", `^no informer has elsewhere/a \(.*\n  this name exists in another `+
		`namespace: `+s.key("a")+`\n`)
}

// Four resyncs happen meanwhile.
func (s *sample) isHealthy() {
	s.findsNothing(func(n int) {
		s.patchDeployment("web-a", fmt.Sprintf(`{"spec": {"replicas": %d}}`, 2+n))
	})
}

func (s *sample) filters() {
	s.createDeployment("alone")
	s.asks("object filtered", "alone", `, `+deploymentInformer+`, handler main\.`)
}

// The Deployment of its name belongs to no Foo: each attempt fails, later and later.
func (s *sample) retries() {
	s.createFoo("b", "alone")
	for _, calls := range []string{`\d\d`, `1[1-9]`} { // the eleventh is due after 5 s
		s.asks("reconcile fails", "b", `^\S+ joins `+fooQueue+` in \S+, at \S+, after `+calls+
			` calls .*\n  `+fooInformer+` has \S+/b at resourceVersion \d+`)
	}
	require.NoError(s.t, s.foos.Delete(s.t.Context(), "b", metav1.DeleteOptions{}))
}

func (s *sample) meetsQuota() {
	lift := limit(s.t, s.gate.admin, s.namespace, "count/deployments.apps")
	s.createFoo("q", "web-q")
	s.asks("quota exceeded", "q", `after \d+ calls? of AddRateLimited`)
	lift()
	s.answers(s.key("q"), `^`+fooQueue+` reconciled \S+/q \S+ ago, `)
}

// The handler adds the key of the new owner, and not that of the Deployment.
func (s *sample) changesOwner() {
	s.createFoo("first", "web-first")
	s.createFoo("second", "web-second")
	s.hasReplicas("web-first", 1)
	s.hasReplicas("web-second", 1)
	second, err := s.foos.Get(s.t.Context(), "second", metav1.GetOptions{})
	require.NoError(s.t, err)
	s.patchDeployment("web-first", fmt.Sprintf(`{"metadata": {"ownerReferences": [{"apiVersion": `+
		`"samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "controller": true, `+
		`"blockOwnerDeletion": true, "name": "second", "uid": %q}]}}`, second.GetUID()))
	s.asks("owner changed", "web-first", `update of \S+/web-first from resourceVersion \d+ to \d+ `+
		`by \S+ \(changed: \.metadata\.ownerReferences\b.*\), `+deploymentInformer)
	require.NoError(s.t, s.foos.Delete(s.t.Context(), "first", metav1.DeleteOptions{}))
}

// Both workers wait for an answer of the server; the third Foo waits for a worker.
func (s *sample) hangs() {
	release := s.gate.hold(http.MethodPost, "/deployments")
	defer release()
	for _, name := range []string{"c", "d"} {
		s.createFoo(name, "web-"+name)
		s.asks("reconcile hangs", name, `  its goroutine: select.*    main\.\(\*Controller\)\.`+
			`syncHandler controller\.go:\d+\n`)
	}
	s.createFoo("e", "web-e")
	s.asks("all workers hang", "e")
	s.answers("", `(^|\n)finding: a worker of `+fooQueue+` has had \S+/c for \S+\n`)
	release()
	s.answers(s.key("e"), `^`+fooQueue+` reconciled \S+/e \S+ ago, `)
}

// The handler of Deployments logs each one, and so do the workers; that of Foos does not.
func (s *sample) blocks() {
	release := s.log.block()
	defer release()
	s.patchDeployment("alone", `{"metadata": {"labels": {"a": "b"}}}`)
	s.asks("handler blocked", "alone")
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
	s.gate.mayNot("create", "apps", "deployments")
	s.createFoo("f", "web-f")
	s.asks("permission to write removed", "f", `after \d+ calls? of AddRateLimited`)
	s.gate.allow()
	s.gate.mayNot("list", "apps", "deployments")
	s.gate.cut()
	s.asks("permission to read removed", "alone", deploymentInformer+` may be old: \d+ failures? `+
		`in a row, the last one `)
	s.gate.allow(sampleRules...)
	s.answers(s.key("f"), `^`+fooQueue+` reconciled \S+/f \S+ ago, `)
	s.hasReplicas("web-f", 1)
}

// The key of a Deployment is in no queue. Foos are, as their resyncs fail.
func (s *sample) loses() {
	s.gate.loseServer(func() {
		s.asks("server down", "alone", deploymentInformer+` may be old: \d+ failures? in a row, `)
		s.answers(s.key("a"), fooInformer+` may be old: \d+ failures? in a row, the last one `+
			`.*connection refused`)
		s.answers("", `(^|\n)finding: `+deploymentInformer+` failed \d+ times in a row, the last `+
			`time with: .*connection refused`)
	})
}

// The goroutine takes the next key.
func (s *sample) forgets() {
	s.process.Kill()
	s.process = run(s.gate.t, s.servers, "sample-controller-forgetful", s.forgetful,
		"--kubeconfig", s.gate.kubeconfig())
	s.debugger = newDebugger(s.gate.t, s.process)
	s.createFoo("forgotten", "web-forgotten")
	s.asks("Done forgotten", "forgotten", `\n  the goroutine that took it (waits for the next key|`+
		`has taken \S+ since|in main\S+).*: its Done was forgotten, or `)
	s.answers("", `(^|\n)finding: a worker of `+fooQueue+` took \S+/forgotten \S+ ago in `+
		`main\.\(\*Controller\)\.processNextWorkItem, and its goroutine has taken \S+ `+
		`since: Done was not called for \S+/forgotten\n`)
}

// asks asks for an object, and compares the first line with the table.
func (s *sample) asks(situation, name string, wants ...string) {
	s.t.Helper()
	s.says(s.debugger, situation, s.key(name), wants...)
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
