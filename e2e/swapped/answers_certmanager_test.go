// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
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
	"k8s.io/client-go/dynamic"

	"example.com/informerstack/e2e/cluster"
)

// issuance is a namespace in which cert-manager issues certificates.
type issuance struct {
	*debugger // of the process that leads
	gate      *gate
	servers   *cluster.Cluster
	program   string
	namespace string
	client    dynamic.Interface
}

// cert-manager answers where its Certificates are, while an issuer is missing and permissions, the
// server and the lease are taken from it.
func TestSwapped_CertManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	const dir = "certmanager"
	program := compile(t, dir, swap(t, dir, "--devtools", "127.0.0.1:0"), "./manager")
	servers := cluster.New(t, cluster.Options{})
	crds, err := filepath.Glob(filepath.Join(
		moduleFolder(t, dir, "github.com/cert-manager/cert-manager"), "deploy", "crds", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, crds)
	for _, crd := range crds {
		define(t, servers, crd)
	}
	i := &issuance{gate: newGate(t, servers), servers: servers, program: program}
	i.client, err = dynamic.NewForConfig(servers.Config(cluster.AdminToken))
	require.NoError(t, err)
	i.namespace = cluster.NewNamespace(t, i.gate.admin)
	i.gate.allow(issuanceRules...)
	i.debugger = newDebugger(t, i.start("first", i.gate))
	play(t, i, func(t *testing.T) { i.t, i.gate.t = t, t }, []step[*issuance]{
		{"an issuer is missing", (*issuance).lacksIssuer},
		{"a Certificate becomes a Secret", (*issuance).works},
		{"a Secret without the label", (*issuance).filters},
		{"an answer of the server that does not come", (*issuance).hangs},
		{"permissions are taken", (*issuance).mayNoLonger},
		{"the server stops", (*issuance).loses},
		{"the lease is lost", (*issuance).losesLease},
	})
}

// issuanceRules are the permissions that these controllers need; the last are those on Secrets.
var issuanceRules = []rbacv1.PolicyRule{
	rule("coordination.k8s.io", "leases", "get create update"),
	rule("cert-manager.io", "*", "*"),
	rule("", "events", "create patch"),
	rule("", "secrets", "get list watch create update patch delete"),
}

// start starts a process.
func (i *issuance) start(name string, way *gate) *cluster.Process {
	i.gate.t.Helper()
	return run(i.gate.t, i.servers, "cert-manager-"+name, i.program, "--kubeconfig",
		way.kubeconfig(), "--namespace", i.namespace, "--lease-duration", "60s")
}

func (i *issuance) key(name string) string { return i.namespace + "/" + name }

const certificateInformer = `informer SharedIndexInformer \*v1\.Certificate`

// The request waits, and the new issuer is the reason of its next reconcile.
func (i *issuance) lacksIssuer() {
	i.create("certificates", certificate("a"))
	i.answers(i.key("a-1"), `^queue certificaterequests-issuer-[\w-]+ reconciled \S+/a-1 \S+ ago, and `+
		`it has not changed since: it ended with Forget in `)
	i.create("issuers", map[string]any{"kind": "Issuer",
		"metadata": map[string]any{"name": "own"},
		"spec":     map[string]any{"selfSigned": map[string]any{}}})
	i.answers(i.key("a-1"), `because of: add of \S+/own at resourceVersion \d+, informer `+
		`SharedIndexInformer \*v1\.Issuer, handler `)
	i.hasSecret("a-tls")
}

func (i *issuance) works() {
	i.answers(i.key("a"), `^queue certificates-[\w-]+ reconciled \S+/a \S+ ago, and it has not changed `+
		`since: it ended with Forget in \S+, because of: `)
	i.answers(i.key("a"), `by queue certificates-readiness:\n`)
	i.answers("", `\n  `+certificateInformer+` -> handler \S+ -> queue certificates-trigger: \d+ `+
		`keys added\n`)
	i.answers(i.key("missing"), `^no informer has \S+/missing \(.*: it does not exist, or a selector `)
	i.answers("elsewhere/a", `\n  there is another namespace with this name: `+i.key("a"))
}

// Secrets without cert-manager's label are cached as metadata only.
func (i *issuance) filters() {
	_, err := i.gate.admin.CoreV1().Secrets(i.namespace).Create(i.gate.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, metav1.CreateOptions{})
	require.NoError(i.gate.t, err)
	const metadata = `informer SharedIndexInformer \*v1\.PartialObjectMetadata`
	i.answers(i.key("plain"), `^`+metadata+` has \S+/plain at resourceVersion \d+, its handlers `+
		`were called and added no key to these queues\n.*: add of \S+/plain at resourceVersion \d+, `+
		metadata+`, handler \S+; added no key\n`)
}

// Each of the five workers waits for an answer of the server; the last key waits for a worker.
func (i *issuance) hangs() {
	release := i.gate.hold(http.MethodPost, "/secrets")
	defer release()
	for n := range 6 {
		i.create("certificates", certificate("hangs-"+strconv.Itoa(n)))
		if n < 5 {
			i.answers(i.key("hangs-"+strconv.Itoa(n)), `^a worker of queue `+
				`certificates-key-manager has had \S+/hangs-\d for \S+, and has not called Done`+
				`.*  its goroutine: select.*    \S*keymanager\.\(\*controller\)\.ProcessItem `+
				`keymanager_controller.go:\d+\n`)
		}
	}
	i.answers(i.key("hangs-5"), `^\S+/hangs-5 is number 1 of 1 in queue certificates-key-manager; `+
		`its workers have 5 other keys, the longest for \S+\n`)
	i.answers("", `(^|\n)finding: a worker of queue certificates-key-manager has had \S+/hangs-0 `)
	release()
	i.hasSecret("hangs-5-tls")
}

func (i *issuance) mayNoLonger() {
	i.gate.allow(issuanceRules[:len(issuanceRules)-1]...)
	i.create("certificates", certificate("b"))
	i.answers(i.key("b"), `^\S+/b joins queue certificates-key-manager in \S+, at \S+, after \d+ `+
		`calls? of AddRateLimited\n  `+certificateInformer+` has \S+/b at resourceVersion \d+`)
	i.gate.cut()
	i.answers(i.key("b"), `informer SharedIndexInformer \*v1\.\w+ may be old: \d+ failures? in a row, `+
		`the last one .*secrets is forbidden: User "weak" cannot `)
	i.gate.allow(issuanceRules...)
	i.hasSecret("b-tls")
}

func (i *issuance) loses() {
	i.gate.loseServer(func() {
		i.answers(i.key("a"), certificateInformer+` may be old: \d+ failures? in a row, the last `+
			`one .*connection refused`)
	})
}

// The leader cannot renew its lease, and another process takes over.
func (i *issuance) losesLease() {
	t := i.gate.t
	standby := newGate(t, i.servers)
	second := newDebugger(t, i.start("second", standby))
	waits := `this process does not lead ` + i.namespace + `/cert-manager-controller \(\w+\): \S+ does\n`
	second.answers(i.key("a"), waits)
	i.gate.hold(http.MethodPut, "/leases/cert-manager-controller")
	i.answers(i.key("a"), `this process leads \S+/cert-manager-controller, and has not `+
		`renewed the lease for \d\d\.\d+s`)
	i.answers("", `(^|\n)finding: this process leads \S+, and has not renewed the lease for \S+s`)
	second.answers(i.key("a"), `^queue certificates-[\w-]+ reconciled \S+/a \S+ ago, `)
	assert.NotContains(t, second.ask("--why", i.key("a")), "does not lead")
}

func certificate(name string) map[string]any {
	return map[string]any{"kind": "Certificate", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"secretName": name + "-tls",
			"commonName": name + ".example.com", "issuerRef": map[string]any{"name": "own"}}}
}

func (i *issuance) create(resource string, object map[string]any) {
	i.gate.t.Helper()
	object["apiVersion"] = "cert-manager.io/v1"
	_, err := i.client.Resource(schema.GroupVersionResource{Group: "cert-manager.io",
		Version: "v1", Resource: resource}).Namespace(i.namespace).Create(i.gate.t.Context(),
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
