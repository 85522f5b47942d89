// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// longLease outlives the questions: a leader that cannot renew it ends after two thirds.
const longLease = "60s"

// askedCopies are copies with two operators: the first leads, and the second waits.
type askedCopies struct {
	*copies
	column        *column
	gate          *gate  // of the first
	forgetful     string // a program with a bug
	first, second *debugger
}

// An operator of controller-runtime with its own queue answers where its keys are, while
// permissions, the quota, the server and the lease are taken from it. The second one has a queue of
// client-go's names. The last step has a controller-runtime that forgets Done, and a handler that
// waits.
func TestSwapped_ControllerRuntimeManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	goWork := swap(t, "controllerruntime", "--devtools", "127.0.0.1:0")
	program := compile(t, "controllerruntime", goWork, "./manager")
	plant(t, goWork, "controllerruntime", controllerRuntime, fault{
		"pkg/internal/controller/controller.go", "	defer c.Queue.Done(obj)\n",
		"	if r, is := any(obj).(reconcile.Request); !is || r.Name != \"forgotten\" {\n" +
			"		defer c.Queue.Done(obj)\n	}\n"})
	servers := cluster.New(t, cluster.Options{})
	c := &askedCopies{copies: newCopies(t, servers), gate: newGate(t, servers),
		column:    newColumn(t, "controller-runtime"),
		forgetful: compile(t, "controllerruntime", goWork, "./manager")}
	c.gate.allow(copierRules[1:]...)
	first := c.start(program, "first", "--kubeconfig", c.gate.kubeconfig(),
		"--lease-duration", longLease)
	first.leads(true)
	c.first = newDebugger(t, first.process)
	second := c.start(program, "second", "--priority-queue=false", "--lease-duration", longLease)
	second.leads(false)
	c.second = newDebugger(t, second.process)
	play(t, c, func(t *testing.T) {
		c.copies.t, c.gate.t, c.first.t, c.second.t = t, t, t, t
	}, []step[*askedCopies]{
		{"no permission at the start", (*askedCopies).mayNotList},
		{"a ConfigMap becomes a Secret", (*askedCopies).works},
		{"a healthy period", (*askedCopies).isHealthy},
		{"a ConfigMap without the label", (*askedCopies).filters},
		{"a Secret that cannot be changed", (*askedCopies).retries},
		{"a quota", (*askedCopies).meetsQuota},
		{"a Secret gets another owner", (*askedCopies).changesOwner},
		{"an answer of the server that does not come", (*askedCopies).hangs},
		{"permissions are taken", (*askedCopies).mayNoLonger},
		{"another process leads", (*askedCopies).waits},
		{"the lease is lost", (*askedCopies).losesLease},
		{"the server stops", (*askedCopies).loses},
		{"Done is forgotten, and a handler waits", (*askedCopies).hasBugs},
	})
}

// copierRules are the permissions that the operator needs; the first are those on ConfigMaps, the
// last those on Secrets.
var copierRules = []rbacv1.PolicyRule{
	rule("", "configmaps", "get list watch"),
	rule("coordination.k8s.io", "leases", "get create update"),
	rule("", "events", "create patch"),
	rule("events.k8s.io", "events", "create patch"),
	rule("", "namespaces", "get"),
	rule("", "secrets", "get list watch create update"),
}

func (c *askedCopies) key(name string) string { return c.namespace + "/" + name }

const configMapInformer = `informer SharedIndexInformer \*v1\.ConfigMap`

func (c *askedCopies) mayNotList() {
	c.create("a", "1")
	c.column.says(c.first, "no permission at the start", c.key("a"))
	c.gate.allow(copierRules...)
}

func (c *askedCopies) works() {
	c.isCopied("a", "1")
	c.column.says(c.first, "healthy", c.key("a"), `because of: (initial list|add) of \S+/a at `+
		`resourceVersion \d+, informer SharedIndexInformer \*v1.(ConfigMap|Secret), handler`)
	c.deleteCopy("a")
	c.isCopied("a", "1")
	c.first.answers(c.key("a"), `because of: delete of \S+/a at resourceVersion \d+, informer `+
		`SharedIndexInformer \*v1.Secret`)
	c.column.says(c.first, "no such object", c.key("missing"))
}

func (c *askedCopies) isHealthy() {
	c.create("healthy", "0")
	c.first.findsNothing(func(n int) { c.update("healthy", strconv.Itoa(n)) })
}

func (c *askedCopies) filters() {
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(c.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "unlabelled"}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.column.says(c.first, "object filtered", c.key("unlabelled"))
}

// Each attempt fails, later and later, until the Secret is deleted.
func (c *askedCopies) retries() {
	c.create("fixed", "1")
	c.isCopied("fixed", "1")
	c.patchCopy("fixed", `{"immutable": true}`)
	c.update("fixed", "2")
	c.column.says(c.first, "reconcile fails", c.key("fixed"), ` because of: retry after: `)
	c.deleteCopy("fixed")
	c.isCopied("fixed", "2")
}

func (c *askedCopies) meetsQuota() {
	lift := limit(c.t, c.client, c.namespace, "count/secrets")
	c.create("q", "1")
	c.column.says(c.first, "quota exceeded", c.key("q"), ` because of: retry after: `)
	lift()
	c.isCopied("q", "1")
}

// The handler adds the keys of the former owner and of the new one. The former one fails.
func (c *askedCopies) changesOwner() {
	for _, name := range []string{"first", "second"} {
		c.create(name, "1")
		c.isCopied(name, "1")
	}
	second, err := c.client.CoreV1().ConfigMaps(c.namespace).Get(c.t.Context(), "second",
		metav1.GetOptions{})
	require.NoError(c.t, err)
	c.patchCopy("first", fmt.Sprintf(`{"metadata": {"ownerReferences": [{"apiVersion": "v1", `+
		`"kind": "ConfigMap", "name": "second", "controller": true, "uid": %q}]}}`,
		second.GetUID()))
	c.column.says(c.first, "owner changed", c.key("first"), `update of \S+/first from `+
		`resourceVersion \d+ to \d+ by \S+, informer SharedIndexInformer \*v1\.Secret`)
	c.first.answers(c.key("second"), ` because of: update of \S+/first from resourceVersion `)
	c.deleteCopy("first")
	c.isCopied("first", "1")
}

// patchCopy changes a Secret of the operator.
func (c *askedCopies) patchCopy(name, patch string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Secrets(c.namespace).Patch(c.t.Context(), name,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(c.t, err)
}

func (c *askedCopies) hangs() {
	release := c.gate.hold(http.MethodPost, "/secrets")
	defer release()
	c.create("hangs", "1")
	c.column.says(c.first, "reconcile hangs", c.key("hangs"),
		`  its goroutine: select.*    main\.\(\*copier\)\.Reconcile main\.go:\d+\n`)
	c.create("waits", "1")
	c.column.says(c.first, "all workers hang", c.key("waits"))
	c.first.answers("", `(^|\n)finding: a worker of queue configmap has had \S+/hangs for \S+\n`)
	release()
	c.isCopied("waits", "1")
}

// No ConfigMap has the name of the last Secret: only one informer has it.
func (c *askedCopies) mayNoLonger() {
	c.gate.allow(copierRules[:len(copierRules)-1]...)
	c.create("d", "1")
	c.column.says(c.first, "permission to write removed", c.key("d"),
		`\n  `+configMapInformer+` has \S+/d at resourceVersion \d+`)
	_, err := c.client.CoreV1().Secrets(c.namespace).Create(c.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "alone"}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.first.answers(c.key("alone"), `informer SharedIndexInformer \*v1\.Secret has \S+/alone `)
	c.gate.cut()
	c.column.says(c.first, "permission to read removed", c.key("alone"))
	c.gate.allow(copierRules...)
	c.isCopied("d", "1")
}

func (c *askedCopies) waits() {
	c.column.says(c.second, "another process leads", c.key("a"))
}

// The leader cannot renew its lease and ends. The other process takes over.
func (c *askedCopies) losesLease() {
	release := c.gate.hold(http.MethodPut, "/leases/copier")
	defer release()
	c.column.says(c.first, "the lease is not renewed", c.key("a"), `this process leads \S+/copier, and has not renewed the lease for `+
		`\d\d\.\d+s`)
	c.first.answers("", `(^|\n)finding: this process leads \S+/copier, and has not renewed `)
	c.column.says(c.second, "this process leads instead", c.key("a"))
	assert.NotContains(c.t, c.second.ask("--why", c.key("a")), "does not lead")
	c.create("e", "1")
	c.isCopied("e", "1")
}

func (c *askedCopies) loses() {
	c.servers.KillAPIServer()
	c.column.says(c.second, "server down", c.key("a"))
	require.NoError(c.t, c.servers.StartAPIServer(c.t.Context()))
}

// The operator with the bugs has a namespace and a lease of its own.
func (c *askedCopies) hasBugs() {
	c.namespace = fixture.NewNamespace(c.t, c.client)
	c.first = newDebugger(c.gate.t, c.start(c.forgetful, "forgetful", "--kubeconfig",
		c.gate.kubeconfig(), "--ask-in-handler").process)
	c.create("forgotten", "1")
	c.column.says(c.first, "Done forgotten", c.key("forgotten"), `\n  the goroutine that took it `+
		`(waits for the next key|has taken \S+ since|in \S+).*: its Done was forgotten, or `)
	c.isCopied("forgotten", "1")
	c.create("next", "1")
	c.isCopied("next", "1")
	c.first.answers("", `(^|\n)finding: a worker of queue configmap took \S+/forgotten \S+ ago in `+
		`\S+, and its goroutine has taken \S+ since: Done was not called for \S+/forgotten\n`)
	c.blocks()
}

// The handler asks the server for the namespace.
func (c *askedCopies) blocks() {
	release := c.gate.hold(http.MethodGet, "/namespaces/"+c.namespace)
	defer release()
	c.create("b", "1")
	c.create("c", "1")
	c.column.says(c.first, "handler blocked", c.key("b"))
	c.first.answers(c.key("c"), `^`+configMapInformer+` has \S+/c at resourceVersion \d+, and its `+
		`handler \S+ is 2 calls behind, the oldest for \S+: that of \S+/c may be one of them\n`)
	c.first.answers("", `(^|\n)finding: a call of handler \S+ of `+configMapInformer+` has not `+
		`returned for \S+; calls that wait: 1\n`)
	release()
	c.isCopied("c", "1")
}
