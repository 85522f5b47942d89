// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/realserver/cluster"
)

// longLease outlives the questions: a leader that cannot renew it ends after two thirds.
const longLease = "60s"

// askedCopies are copies with two operators: the first leads, and the second waits.
type askedCopies struct {
	*copies
	column        *column
	gate          *gate // of the first
	first, second *debugger
}

// An operator of controller-runtime with its own queue answers where its keys are, while
// permissions, the server and the lease are taken from it. The second one has a queue of
// client-go's names. The first lines are those of docs/reports/answers.md.
func TestSwapped_ControllerRuntimeManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	servers := cluster.New(t, cluster.Options{})
	goWork := swap(t, "controllerruntime", "--devtools", "127.0.0.1:0")
	program := compile(t, "controllerruntime", goWork, "./manager")
	c := &askedCopies{copies: newCopies(t, servers), gate: newGate(t, servers),
		column: newColumn(t, "controller-runtime")}
	c.gate.allow(copierRules...)
	first := c.start(program, "first", "--kubeconfig", c.gate.kubeconfig(),
		"--ask-in-handler", "--lease-duration", longLease)
	first.leads(true)
	c.first = newDebugger(t, first.process)
	second := c.start(program, "second", "--priority-queue=false", "--lease-duration", longLease)
	second.leads(false)
	c.second = newDebugger(t, second.process)
	play(t, c, func(t *testing.T) {
		c.copies.t, c.gate.t, c.first.t, c.second.t = t, t, t, t
	}, []step[*askedCopies]{
		{"a ConfigMap becomes a Secret", (*askedCopies).works},
		{"a ConfigMap without the label", (*askedCopies).filters},
		{"an answer of the server that does not come", (*askedCopies).hangs},
		{"a handler that waits", (*askedCopies).blocks},
		{"permissions are taken", (*askedCopies).mayNoLonger},
		{"another process leads", (*askedCopies).waits},
		{"the lease is lost", (*askedCopies).losesLease},
		{"the server stops", (*askedCopies).loses},
	})
}

// copierRules are the permissions that the operator needs; the last are those on Secrets.
var copierRules = []rbacv1.PolicyRule{
	rule("coordination.k8s.io", "leases", "get create update"),
	rule("", "events", "create patch"),
	rule("events.k8s.io", "events", "create patch"),
	rule("", "namespaces", "get"),
	rule("", "configmaps", "get list watch"),
	rule("", "secrets", "get list watch create update"),
}

func (c *askedCopies) key(name string) string { return c.namespace + "/" + name }

const configMapInformer = `informer SharedIndexInformer \*v1\.ConfigMap`

func (c *askedCopies) works() {
	c.create("a", "1")
	c.isCopied("a", "1")
	c.column.says(c.first, "healthy", c.key("a"), `because of: (initial list|add) of \S+/a at `+
		`resourceVersion \d+, informer SharedIndexInformer \*v1.(ConfigMap|Secret), handler`)
	c.deleteCopy("a")
	c.isCopied("a", "1")
	c.first.answers(c.key("a"), `because of: delete of \S+/a at resourceVersion \d+, informer `+
		`SharedIndexInformer \*v1.Secret`)
	c.column.says(c.first, "no such object", c.key("missing"))
}

func (c *askedCopies) filters() {
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(c.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "unlabelled"}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.column.says(c.first, "object filtered", c.key("unlabelled"))
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

func (c *askedCopies) mayNoLonger() {
	c.gate.allow(copierRules[:len(copierRules)-1]...)
	c.create("d", "1")
	c.column.says(c.first, "permission to write removed", c.key("d"),
		`\n  `+configMapInformer+` has \S+/d at resourceVersion \d+`)
	c.gate.cut()
	c.first.answers(c.key("d"), `informer SharedIndexInformer \*v1\.Secret may be old: \d+ failures? `+
		`in a row, the last one .*secrets is forbidden: User "weak" cannot `)
	c.gate.allow(copierRules...)
	c.isCopied("d", "1")
}

func (c *askedCopies) waits() {
	c.column.says(c.second, "another process leads", c.key("a"))
}

// The leader cannot renew its lease and ends. The other process takes over.
func (c *askedCopies) losesLease() {
	c.gate.hold(http.MethodPut, "/leases/copier")
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
