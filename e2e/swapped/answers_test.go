// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/e2e/cluster"
)

// debugger asks a process for answers.
type debugger struct {
	t       *testing.T
	command string
	link    string
}

var linkOfDevtools = regexp.MustCompile(`devtools: (http://\S+)`)

func newDebugger(t *testing.T, process *cluster.Process) *debugger {
	command, err := buildInformerstack()
	require.NoError(t, err)
	d := &debugger{t: t, command: command}
	require.Eventually(t, func() bool {
		log, err := process.Log()
		match := linkOfDevtools.FindSubmatch(log)
		if err != nil || match == nil {
			return false
		}
		d.link = string(match[1])
		return true
	}, patience, 50*time.Millisecond)
	return d
}

func (d *debugger) ask(args ...string) string {
	out, err := exec.CommandContext(d.t.Context(), d.command,
		append([]string{"devtools", d.link}, args...)...).CombinedOutput()
	if err != nil {
		return err.Error() + string(out)
	}
	return string(out)
}

// answers waits until the answer about a key, or everything if key is "", matches want.
func (d *debugger) answers(key, want string) {
	d.t.Helper()
	var args []string
	if key != "" {
		args = []string{"--why", key}
	}
	answer := ""
	if !assert.Eventually(d.t, func() bool {
		answer = d.ask(args...)
		return regexp.MustCompile(`(?s)` + want).MatchString(answer)
	}, patience, 200*time.Millisecond) {
		d.t.Logf("want %s\nhave %s", want, answer)
	}
}

// An operator of controller-runtime answers, too; with its own queue it says that it cannot see it.
func TestSwapped_ControllerRuntimeManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	servers := cluster.New(t, cluster.Options{})
	goWork := swap(t, "controllerruntime", "--devtools", "127.0.0.1:0")
	program := compile(t, "controllerruntime", goWork, "./manager")
	c := newCopies(t, servers)
	// A leader that cannot reach the server ends after two thirds of this.
	const lease = "--lease-duration=15s"
	first := c.start(program, "first", "--priority-queue=false", lease)
	first.leads(true)
	d := newDebugger(t, first.process)
	d.ask() // begins to record
	key := func(name string) string { return c.namespace + "/" + name }

	c.create("a", "1")
	c.isCopied("a", "1")
	d.answers(key("a"), `^queue configmap reconciled \S+/a \S+ ago, and it has not changed `+
		`since: it ended with Forget in \S+, because of: `)
	d.answers(key("a"), `because of: (initial list|add) of \S+/a at resourceVersion \d+, informer `+
		`SharedIndexInformer \*v1.ConfigMap, handler`)
	c.deleteCopy("a")
	c.isCopied("a", "1")
	d.answers(key("a"), `because of: delete of \S+/a at resourceVersion \d+, informer `+
		`SharedIndexInformer \*v1.Secret`)
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "unlabelled"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	d.answers(key("unlabelled"), `^a handler was called \S+ ago and added no key: `+
		`(initial list|add) of `)
	d.answers(key("missing"), `^no informer has \S+/missing \(`)

	second := c.start(program, "second", lease)
	second.leads(false)
	waiting := newDebugger(t, second.process)
	waiting.ask()
	c.update("a", "2")
	c.isCopied("a", "2")
	waiting.answers(key("a"), `this process does not lead \S+/copier \(\w+\): \S+ does`)
	first.process.Kill()
	second.leads(true)
	c.update("a", "3")
	c.isCopied("a", "3")
	waiting.answers(key("a"), `has added no key of any object to these queues: it may use another `+
		`goroutine, or a queue that is not shown, such as that of controller-runtime`)

	servers.KillAPIServer()
	waiting.answers(key("a"), `informer SharedIndexInformer \*v1.ConfigMap may be old: \d+ `+
		`failures? in a row, the last one .*connection refused`)
	require.NoError(t, servers.StartAPIServer(t.Context()))
}

// kube-controller-manager on this stack, without a change to it, answers where the keys of its
// controllers are, while it meets a quota, a server that stops, and another leader.
func TestSwapped_KubeControllerManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	program := buildManager(t, "informerstack", "--devtools", "127.0.0.1:0")
	servers := cluster.New(t, cluster.Options{})
	w := newWorkload(t, servers)
	lease := []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s",
		"--leader-elect-retry-period=2s"}
	first := startManager(t, servers, program, "first", lease...)
	first.leads(true)
	d := newDebugger(t, first.process)
	d.ask() // begins to record

	w.deploy("v1", 3)
	w.runs(3, "v1")
	d.answers("swapped/web", `^queue deployment reconciled swapped/web \S+ ago, and it has not `+
		`changed since: it ended with Forget in \S+, because of: .*\(changed: `)
	d.answers("", `informer SharedIndexInformer \*v1.Deployment -> handler deployment\..* -> `+
		`queue deployment: \d+ keys added`)
	d.answers("swapped/other", `^no informer has swapped/other \(`)

	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourcePods: resource.MustParse("3")}},
	}
	_, err := w.client.CoreV1().ResourceQuotas(w.namespace).Create(t.Context(), quota,
		metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		q, err := w.client.CoreV1().ResourceQuotas(w.namespace).Get(t.Context(), "few",
			metav1.GetOptions{})
		return err == nil && q.Status.Used.Pods().Value() == 3
	}, patience, 50*time.Millisecond)
	w.scale(5)
	sets, err := w.client.AppsV1().ReplicaSets(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, sets.Items, 1)
	d.answers("swapped/"+sets.Items[0].Name, `^swapped/web-\w+ joins queue replicaset in \S+, at `+
		`\S+, after \d+ failures?\n.* because of: retry`)
	require.NoError(t, w.client.CoreV1().ResourceQuotas(w.namespace).Delete(t.Context(), "few",
		metav1.DeleteOptions{}))
	w.runs(5, "v1")

	second := startManager(t, servers, program, "second", lease...)
	second.leads(false)
	waiting := newDebugger(t, second.process)
	waiting.answers("swapped/web", `this process does not lead `+
		`kube-system/kube-controller-manager \(\w+\): \S+ does\n`)

	servers.KillAPIServer()
	d.answers("swapped/web", `informer SharedIndexInformer \*v1.Deployment may be old: \d+ `+
		`failures? in a row, the last one .*connection refused`)
	d.answers("", `finding: informer SharedIndexInformer \*v1.Deployment failed \d+ times in a row`)
	require.NoError(t, servers.StartAPIServer(t.Context()))
}
