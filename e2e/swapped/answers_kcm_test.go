// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// askedWorkload is a workload of two managers: the first leads, and the second waits.
type askedWorkload struct {
	*workload
	*column
	gate          *gate // of the first
	log           *logPipe
	servers       *cluster.Cluster
	standby       *running // the second
	forgetful     string   // a program with a bug
	other         string   // a namespace without the Deployment
	replicaSet    string
	first, second *debugger
}

// kube-controller-manager on this stack, without a change to it, answers where the keys of its
// controllers are, while it meets a quota, and permissions, the server, its log and the lease are
// taken from it. The last step is a copy of it that forgets Done.
func TestSwapped_KubeControllerManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	goWork := swap(t, "kcm", "--devtools", "127.0.0.1:0")
	program := compileManager(t, goWork)
	plant(t, goWork, "kcm", "k8s.io/kubernetes", fault{"pkg/controller/replicaset/replica_set.go",
		"	defer rsc.queue.Done(key)\n", "	if !strings.HasSuffix(key, \"/forgotten\") {\n" +
			"		defer rsc.queue.Done(key)\n	}\n"})
	servers := cluster.New(t, cluster.Options{})
	w := &askedWorkload{workload: newWorkload(t, servers), gate: newGate(t, servers),
		log: newLogPipe(t), servers: servers, forgetful: compileManager(t, goWork),
		column: newColumn(t, "kube-controller-manager")}
	w.other = fixture.NewNamespace(t, w.client)
	w.gate.allow(w.allButDeployments()...)
	lease := []string{"--leader-elect-lease-duration=" + longLease,
		"--leader-elect-renew-deadline=40s", "--leader-elect-retry-period=2s"}
	first := startManager(t, servers, w.log.script(program), "first",
		append(lease, "--kubeconfig="+w.gate.kubeconfig(), "-v=4")...)
	first.leads(true)
	w.first = newDebugger(t, w.log)
	w.standby = startManager(t, servers, program, "second", lease...)
	w.second = newDebugger(t, w.standby.process)
	play(t, w, func(t *testing.T) { w.t, w.gate.t, w.first.t, w.second.t = t, t, t, t },
		[]step[*askedWorkload]{
			{"no permission at the start", (*askedWorkload).mayNotList},
			{"a Deployment becomes Pods", (*askedWorkload).works},
			{"a healthy period", (*askedWorkload).isHealthy},
			{"a Pod without the label", (*askedWorkload).filters},
			{"a PriorityClass is missing", (*askedWorkload).lacksPriority},
			{"Pods that are not allowed", (*askedWorkload).retries},
			{"a quota", (*askedWorkload).meetsQuota},
			{"a Pod without its owner", (*askedWorkload).changesOwner},
			{"an answer of the server that does not come", (*askedWorkload).hangs},
			{"a log that is not read", (*askedWorkload).blocks},
			{"permissions are taken", (*askedWorkload).mayNoLonger},
			{"the server stops", (*askedWorkload).loses},
			{"the lease is lost", (*askedWorkload).losesLease},
			{"Done is forgotten", (*askedWorkload).forgets},
		})
}

// allButDeployments are all permissions but those on Deployments.
func (w *askedWorkload) allButDeployments() []rbacv1.PolicyRule {
	w.t.Helper()
	groups, err := w.client.Discovery().ServerGroups()
	require.NoError(w.t, err)
	rules := []rbacv1.PolicyRule{rule("apps", "controllerrevisions daemonsets daemonsets/status "+
		"replicasets replicasets/status statefulsets statefulsets/status", "*")}
	for _, group := range groups.Groups {
		if group.Name != "apps" {
			rules = append(rules, rule(group.Name, "*", "*"))
		}
	}
	return rules
}

const kcmDeployments = `informer SharedIndexInformer \*v1\.Deployment`

// asks asks the first process, and compares the first line with the table.
func (w *askedWorkload) asks(situation, key string, wants ...string) {
	w.t.Helper()
	w.says(w.first, situation, key, wants...)
}

func (w *askedWorkload) mayNotList() {
	w.deploy("v1", 3)
	w.asks("no permission at the start", "swapped/web")
	w.gate.allow(rule("*", "*", "*"))
}

func (w *askedWorkload) works() {
	w.runs(3, "v1")
	w.asks("healthy", "swapped/web", `because of: .*\(changed: `)
	w.first.answers("", kcmDeployments+` -> handler deployment\..* -> queue deployment: \d+ keys? added`)
	w.asks("no such object", "swapped/missing")
	w.says(w.second, "another process leads", "swapped/web", `this process does not lead `+
		`kube-system/kube-controller-manager \(\w+\): \S+ does\n`)
	w.replicaSet = w.namespace + "/" + w.replicaSets(w.t)["v1"].Name
}

func (w *askedWorkload) isHealthy() {
	w.first.findsNothing(func(n int) {
		if n%5 == 0 {
			w.scale(int32(2 + n%2))
		}
	})
	w.scale(3)
	w.runs(3, "v1")
}

// No ReplicaSet selects the Pod, so no handler adds one for it.
func (w *askedWorkload) filters() {
	_, err := w.client.CoreV1().Pods(w.namespace).Create(w.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "alone"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.asks("object filtered", "swapped/alone", `informer SharedIndexInformer \*v1\.Pod, handler `+
		`\S+; no Add was seen\n`) // the text has ten calls
	require.NoError(w.t, w.client.CoreV1().Pods(w.namespace).Delete(w.t.Context(), "alone",
		*metav1.NewDeleteOptions(0)))
}

// The next attempt succeeds when the PriorityClass exists.
func (w *askedWorkload) lacksPriority() {
	w.createReplicaSet("needs", "missing")
	w.asks("another object is missing", w.other+"/needs", ` because of: retry after: `)
	_, err := w.client.SchedulingV1().PriorityClasses().Create(w.t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "missing"}},
		metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.first.answers(w.other+"/needs", `^queue replicaset reconciled \S+/needs \S+ ago, `)
}

// The namespace does not allow such Pods.
func (w *askedWorkload) retries() {
	w.labelNamespace(`"restricted"`)
	w.createReplicaSet("rejected", "")
	w.asks("reconcile fails", w.other+"/rejected", ` because of: retry after: `)
	w.labelNamespace(`null`)
	w.first.answers(w.other+"/rejected", `^queue replicaset reconciled \S+/rejected \S+ ago, `)
}

// labelNamespace sets which Pods the other namespace allows.
func (w *askedWorkload) labelNamespace(level string) {
	w.t.Helper()
	_, err := w.client.CoreV1().Namespaces().Patch(w.t.Context(), w.other, types.MergePatchType,
		[]byte(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": `+level+`}}}`),
		metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// createReplicaSet creates one of one Pod in the other namespace.
func (w *askedWorkload) createReplicaSet(name, priorityClass string) {
	w.t.Helper()
	labels := map[string]string{"app": name}
	_, err := w.client.AppsV1().ReplicaSets(w.other).Create(w.t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{PriorityClassName: priorityClass,
					Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *askedWorkload) meetsQuota() {
	lift := limit(w.t, w.client, w.namespace, "count/pods")
	w.scale(5)
	w.asks("quota exceeded", w.replicaSet, ` because of: retry after: `)
	lift()
	w.runs(5, "v1")
}

// The ReplicaSet no longer selects the Pod, and takes its reference from it. The handler adds the
// key of the former owner.
func (w *askedWorkload) changesOwner() {
	pods, err := w.client.CoreV1().Pods(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	name := pods.Items[0].Name
	_, err = w.client.CoreV1().Pods(w.namespace).Patch(w.t.Context(), name,
		types.MergePatchType, []byte(`{"metadata": {"labels": {"app": "own"}}}`),
		metav1.PatchOptions{})
	require.NoError(w.t, err)
	w.asks("owner changed", w.namespace+"/"+name, `\(changed: \.metadata\.ownerReferences\b`)
	require.NoError(w.t, w.client.CoreV1().Pods(w.namespace).Delete(w.t.Context(), name,
		*metav1.NewDeleteOptions(0)))
	w.runs(5, "v1")
}

// Each of the five workers waits for an answer of the server; the last key waits for a worker.
func (w *askedWorkload) hangs() {
	release := w.gate.hold(http.MethodPost, "/pods")
	defer release()
	w.scale(6)
	w.asks("reconcile hangs", w.replicaSet, `  its goroutine: .*    \S+/replicaset\.`+
		`\(\*ReplicaSetController\)\.syncReplicaSet replica_set\.go:\d+\n`)
	w.first.answers("", `(^|\n)finding: a worker of queue replicaset has had swapped/web-\w+ for `)
	for n := range 4 {
		w.createReplicaSet("hangs-"+strconv.Itoa(n), "")
	}
	w.createReplicaSet("waits", "")
	w.asks("all workers hang", w.other+"/waits")
	release()
	w.first.answers(w.other+"/waits", `^queue replicaset reconciled \S+/waits \S+ ago, `)
	w.runs(6, "v1")
}

// The handlers of ReplicaSets log each one.
func (w *askedWorkload) blocks() {
	release := w.log.block()
	defer release()
	patch := `{"metadata": {"labels": {"a": "b"}}}`
	_, err := w.client.AppsV1().Deployments(w.namespace).Patch(w.t.Context(), "web",
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
	w.asks("handler blocked", "swapped/web")
	w.first.answers("", `(^|\n)finding: a call of handler deployment\.\S+ of `+kcmDeployments+
		` has not returned for `)
	release()
	w.first.answers("swapped/web", `^queue deployment reconciled swapped/web \S+ ago, `)
}

// Workers notice at once that a permission is gone, informers when their watch has ended.
func (w *askedWorkload) mayNoLonger() {
	reads := rule("*", "*", "get list watch")
	leases := rule("coordination.k8s.io", "leases", "*")
	w.gate.allow(reads, leases, rule("apps", "*", "*"), rule("", "events", "create patch"))
	w.gate.mayNot("create", "", "pods")
	w.scale(7)
	w.asks("permission to write removed", w.replicaSet)
	w.gate.allow(leases)
	w.gate.mayNot("list", "apps", "deployments")
	w.gate.cut()
	w.asks("permission to read removed", "swapped/web")
	w.gate.allow(rule("*", "*", "*"))
	w.runs(7, "v1")
}

func (w *askedWorkload) loses() {
	w.gate.loseServer(func() {
		w.asks("server down", "swapped/web")
		w.first.answers("", `(^|\n)finding: `+kcmDeployments+` failed \d+ times in a row`)
	})
}

// The leader cannot renew its lease and ends; the other process does its work.
func (w *askedWorkload) losesLease() {
	w.gate.hold(http.MethodPut, "/leases/kube-controller-manager")
	w.asks("the lease is not renewed", "swapped/web", `this process leads `+
		`kube-system/kube-controller-manager, and has not renewed the lease for \d\d\.\d+s`)
	w.first.answers("", `(^|\n)finding: this process leads kube-system/kube-controller-manager, and `+
		`has not renewed the lease for `)
	w.says(w.second, "this process leads instead", "swapped/web")
	assert.NotContains(w.t, w.second.ask("--why", "swapped/web"), "does not lead")
	w.scale(2)
	w.runs(2, "v1")
}

// The copy with the bug needs no lease.
func (w *askedWorkload) forgets() {
	w.standby.process.Kill()
	forgetful := startManager(w.t, w.servers, w.forgetful, "forgetful", "--leader-elect=false")
	w.first = newDebugger(w.gate.t, forgetful.process)
	w.createReplicaSet("forgotten", "")
	w.asks("Done forgotten", w.other+"/forgotten", `\n  the goroutine that took it (waits for the `+
		`next key|has taken \S+ since|in \S+).*: its Done was forgotten, or `)
}
