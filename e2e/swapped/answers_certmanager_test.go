// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
)

// issuance is a namespace in which cert-manager issues certificates.
type issuance struct {
	*debugger // of the process that leads
	*column
	gate      *gate
	servers   *cluster.Cluster
	program   string
	faulty    string // a program with bugs
	second    *cluster.Process
	namespace string
	client    dynamic.Interface
}

// cert-manager answers where its Certificates are, while an issuer is missing and permissions, the
// quota, the server and the lease are taken from it. The last step is a copy of it with two bugs.
func TestSwapped_CertManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	const dir = "certmanager"
	const module = "github.com/cert-manager/cert-manager"
	goWork := swap(t, dir, "--devtools", "127.0.0.1:0")
	program := compile(t, dir, goWork, "./manager")
	plant(t, goWork, dir, module, certManagerFaults...)
	faulty := compile(t, dir, goWork, "./manager")
	servers := cluster.New(t, cluster.Options{})
	crds, err := filepath.Glob(filepath.Join(moduleFolder(t, dir, "off", module), "deploy",
		"crds", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, crds)
	for _, crd := range crds {
		define(t, servers, crd)
	}
	i := &issuance{gate: newGate(t, servers), servers: servers, program: program, faulty: faulty,
		column: newColumn(t, "cert-manager")}
	i.client, err = dynamic.NewForConfig(servers.Config(cluster.AdminToken))
	require.NoError(t, err)
	i.namespace = fixture.NewNamespace(t, i.gate.admin)
	i.gate.allow(issuanceRules[1:]...)
	i.debugger = newDebugger(t, i.start("first", program, i.gate, i.namespace))
	play(t, i, func(t *testing.T) { i.t, i.gate.t = t, t }, []step[*issuance]{
		{"no permission at the start", (*issuance).mayNotList},
		{"an issuer is missing", (*issuance).lacksIssuer},
		{"a Certificate becomes a Secret", (*issuance).works},
		{"a healthy period", (*issuance).isHealthy},
		{"a Secret without the label", (*issuance).filters},
		{"a Secret that cannot be changed", (*issuance).retries},
		{"a quota", (*issuance).meetsQuota},
		{"a request gets another owner", (*issuance).changesOwner},
		{"an answer of the server that does not come", (*issuance).hangs},
		{"permissions are taken", (*issuance).mayNoLonger},
		{"the server stops", (*issuance).loses},
		{"the lease is lost", (*issuance).losesLease},
		{"a handler hangs and Done is forgotten", (*issuance).hasBugs},
	})
}

// certManagerFaults hang a handler of a Secret, and forget Done of a key in one queue.
var certManagerFaults = []fault{
	{"pkg/controller/certificates/informers.go", "		u, ok := s.(U)\n",
		"		if s.GetName() == \"blocked\" {\n			select {}\n		}\n" +
			"		u, ok := s.(U)\n"},
	{"pkg/controller/controller.go", "			defer c.queue.Done(obj)\n",
		"			if c.name != \"certificates-readiness\" || obj.Name != \"forgotten\" {\n" +
			"				defer c.queue.Done(obj)\n			}\n"},
}

// issuanceRules are the permissions that these controllers need; the first are those on
// Certificates, the last those on Secrets.
var issuanceRules = []rbacv1.PolicyRule{
	rule("cert-manager.io", "certificates certificates/status", "*"),
	rule("cert-manager.io", "certificaterequests certificaterequests/status clusterissuers "+
		"clusterissuers/status issuers issuers/status", "*"),
	rule("coordination.k8s.io", "leases", "get create update"),
	rule("", "events", "create patch"),
	rule("", "secrets", "get list watch create update patch delete"),
}

// start starts a process. The lease is in a namespace.
func (i *issuance) start(name, program string, way *gate, lease string) *cluster.Process {
	i.gate.t.Helper()
	return run(i.gate.t, i.servers, "cert-manager-"+name, program, "--kubeconfig",
		way.kubeconfig(), "--namespace", lease, "--lease-duration", "60s")
}

func (i *issuance) key(name string) string { return i.namespace + "/" + name }

// asks asks for an object, and compares the first line with the table.
func (i *issuance) asks(situation, name string, wants ...string) {
	i.gate.t.Helper()
	i.says(i.debugger, situation, i.key(name), wants...)
}

const certificateInformer = `informer SharedIndexInformer \*v1\.Certificate`

func (i *issuance) mayNotList() {
	i.create("certificates", certificate("a"))
	i.asks("no permission at the start", "a")
	i.gate.allow(issuanceRules...)
}

// The request waits, and the new issuer is the reason of its next reconcile.
func (i *issuance) lacksIssuer() {
	i.asks("another object is missing", "a-1")
	i.create("issuers", map[string]any{"kind": "Issuer",
		"metadata": map[string]any{"name": "own"},
		"spec":     map[string]any{"selfSigned": map[string]any{}}})
	i.answers(i.key("a-1"), `because of: add of \S+/own at resourceVersion \d+, informer `+
		`SharedIndexInformer \*v1\.Issuer, handler `)
	i.hasSecret("a-tls")
}

func (i *issuance) works() {
	i.asks("healthy", "a", `by queue certificates-readiness:\n`)
	i.answers("", `\n  `+certificateInformer+` -> handler \S+ -> queue certificates-trigger: \d+ `+
		`keys? added\n`)
	i.asks("no such object", "missing")
	i.answers("elsewhere/a", `\n  this name exists in another namespace: `+i.key("a"))
}

func (i *issuance) isHealthy() {
	i.findsNothing(func(n int) {
		if n%10 == 0 {
			i.create("certificates", certificate("healthy-"+strconv.Itoa(n)))
		}
	})
}

// Secrets without cert-manager's label are cached as metadata only.
func (i *issuance) filters() {
	_, err := i.gate.admin.CoreV1().Secrets(i.namespace).Create(i.gate.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, metav1.CreateOptions{})
	require.NoError(i.gate.t, err)
	const metadata = `informer SharedIndexInformer \*v1\.PartialObjectMetadata`
	i.asks("object filtered", "plain", `: add of \S+/plain at resourceVersion \d+, `+
		metadata+`, handler \S+; no Add was seen\n`)
}

// Each attempt fails, later and later, until the Secret is deleted.
func (i *issuance) retries() {
	t, secrets := i.gate.t, i.gate.admin.CoreV1().Secrets(i.namespace)
	_, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "fixed-tls"}, Immutable: new(true),
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	i.create("certificates", certificate("fixed"))
	i.asks("reconcile fails", "fixed", certificateInformer+` has \S+/fixed at resourceVersion \d+`)
	require.NoError(t, secrets.Delete(t.Context(), "fixed-tls", metav1.DeleteOptions{}))
	i.hasSecret("fixed-tls")
}

func (i *issuance) meetsQuota() {
	lift := limit(i.gate.t, i.gate.admin, i.namespace, "count/secrets")
	i.create("certificates", certificate("q"))
	i.asks("quota exceeded", "q", certificateInformer+` has \S+/q at resourceVersion \d+`)
	lift()
	i.hasSecret("q-tls")
}

// The handler adds the key of the new owner, which has a request already: the program deletes this
// one.
func (i *issuance) changesOwner() {
	for _, name := range []string{"first", "second"} {
		i.create("certificates", certificate(name))
		i.hasSecret(name + "-tls")
	}
	t, ctx := i.gate.t, i.gate.t.Context()
	second, err := i.resource("certificates").Get(ctx, "second", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = i.resource("certificaterequests").Patch(ctx, "first-1", types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"ownerReferences": [{"apiVersion": "cert-manager.io/v1", `+
			`"kind": "Certificate", "name": "second", "controller": true, "uid": %q}]}}`,
			second.GetUID()), metav1.PatchOptions{})
	require.NoError(t, err)
	i.asks("owner changed", "first-1", `\n  handler \S+ added \S+/second: queue certificates-\S+ `+
		`reconciled it `)
}

// Each of the five workers waits for an answer of the server; the last key waits for a worker.
func (i *issuance) hangs() {
	release := i.gate.hold(http.MethodPost, "/secrets")
	defer release()
	for n := range 5 {
		i.create("certificates", certificate("hangs-"+strconv.Itoa(n)))
		i.asks("reconcile hangs", "hangs-"+strconv.Itoa(n), `  its goroutine: select.*    `+
			`\S*keymanager\.\(\*controller\)\.ProcessItem keymanager_controller.go:\d+\n`)
	}
	i.create("certificates", certificate("waits"))
	i.asks("all workers hang", "waits")
	i.answers("", `(^|\n)finding: a worker of queue certificates-key-manager has had \S+/hangs-0 `)
	release()
	i.hasSecret("waits-tls")
}

func (i *issuance) mayNoLonger() {
	i.gate.allow(issuanceRules[:len(issuanceRules)-1]...)
	i.gate.mayNot("create", "", "secrets")
	i.create("certificates", certificate("b"))
	i.asks("permission to write removed", "b",
		certificateInformer+` has \S+/b at resourceVersion \d+`)
	i.gate.cut()
	i.asks("permission to read removed", "plain")
	i.gate.allow(issuanceRules...)
	i.hasSecret("b-tls")
}

func (i *issuance) loses() {
	i.gate.loseServer(func() {
		i.asks("server down", "a")
	})
}

// The leader cannot renew its lease, and another process takes over.
func (i *issuance) losesLease() {
	t := i.gate.t
	standby := newGate(t, i.servers)
	i.second = i.start("second", i.program, standby, i.namespace)
	second := newDebugger(t, i.second)
	i.says(second, "another process leads", i.key("a"), `this process does not lead `+i.namespace+
		`/cert-manager-controller \(\w+\): \S+ does\n`)
	i.gate.hold(http.MethodPut, "/leases/cert-manager-controller")
	i.asks("the lease is not renewed", "a", `this process leads \S+/cert-manager-controller, and `+
		`has not renewed the lease for \d\d\.\d+s`)
	i.answers("", `(^|\n)finding: this process leads \S+, and has not renewed the lease for \S+s`)
	i.says(second, "this process leads instead", i.key("a"))
	assert.NotContains(t, second.ask("--why", i.key("a")), "does not lead")
}

// The copy with the bugs has a lease of its own.
func (i *issuance) hasBugs() {
	t := i.gate.t
	i.second.Kill()
	way := newGate(t, i.servers)
	i.debugger = newDebugger(t, i.start("faulty", i.faulty, way,
		fixture.NewNamespace(t, i.gate.admin)))
	i.create("certificates", certificate("forgotten"))
	i.asks("Done forgotten", "forgotten", `\n  the goroutine that took it (waits for the next key|`+
		`has taken \S+ since|in \S+).*: its Done was forgotten, or `)
	i.hasSecret("forgotten-tls")
	_, err := i.gate.admin.CoreV1().Secrets(i.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "blocked",
			Labels: map[string]string{"controller.cert-manager.io/fao": "true"}}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	i.asks("handler blocked", "blocked")
	i.answers("", `(^|\n)finding: a call of handler \S+ of informer SharedIndexInformer `+
		`\*v1\.Secret has not returned for `)
}

func certificate(name string) map[string]any {
	return map[string]any{"kind": "Certificate", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"secretName": name + "-tls",
			"commonName": name + ".example.com", "issuerRef": map[string]any{"name": "own"}}}
}

func (i *issuance) resource(name string) dynamic.ResourceInterface {
	return i.client.Resource(schema.GroupVersionResource{Group: "cert-manager.io",
		Version: "v1", Resource: name}).Namespace(i.namespace)
}

func (i *issuance) create(resource string, object map[string]any) {
	i.gate.t.Helper()
	object["apiVersion"] = "cert-manager.io/v1"
	_, err := i.resource(resource).Create(i.gate.t.Context(),
		&unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	require.NoError(i.gate.t, err)
}

func (i *issuance) hasSecret(name string) {
	i.gate.t.Helper()
	require.EventuallyWithT(i.gate.t, func(t *assert.CollectT) {
		secret, err := i.gate.admin.CoreV1().Secrets(i.namespace).Get(i.gate.t.Context(), name,
			metav1.GetOptions{})
		require.NoError(t, err)
		assert.NotEmpty(t, secret.Data[corev1.TLSCertKey])
	}, patience, 50*time.Millisecond)
}
