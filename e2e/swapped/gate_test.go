// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/informerstack/realserver/cluster"
)

// gate is the way of one program to the API server: its requests can be held, and its watches cut.
// The program is a user without rights until allow gives it some.
type gate struct {
	t       *testing.T
	servers *cluster.Cluster
	admin   kubernetes.Interface
	address string
	server  *httptest.Server
	proxy   *httputil.ReverseProxy

	mu   sync.Mutex
	held map[*request]chan struct{} // closed when the requests may pass
}

// request describes requests: their method, and the end of their path.
type request struct{ method, path string }

func newGate(t *testing.T, servers *cluster.Cluster) *gate {
	t.Helper()
	admin, err := kubernetes.NewForConfig(servers.Config(cluster.AdminToken))
	require.NoError(t, err)
	config := servers.Config("") // requests have the token of the program
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	g := &gate{t: t, servers: servers, admin: admin, address: freeAddress(t),
		held: map[*request]chan struct{}{}}
	g.proxy = &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // events of watches
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// the connection ends, as that to the server did
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler)
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	g.open()
	t.Cleanup(func() {
		g.mu.Lock()
		for _, passes := range g.held {
			close(passes)
		}
		clear(g.held)
		g.mu.Unlock()
		g.close()
	})
	return g
}

// open accepts connections.
func (g *gate) open() {
	g.t.Helper()
	certificate, err := g.servers.Certificate()
	require.NoError(g.t, err)
	listener, err := net.Listen("tcp", g.address)
	require.NoError(g.t, err)
	g.server = httptest.NewUnstartedServer(g)
	require.NoError(g.t, g.server.Listener.Close())
	g.server.Listener = listener
	g.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	g.server.StartTLS()
}

// close ends all connections, and refuses new ones.
func (g *gate) close() {
	g.cut()
	g.server.Close()
}

// loseServer kills the API server while f runs: the gate refuses connections, as the server does.
func (g *gate) loseServer(f func()) {
	g.t.Helper()
	g.servers.KillAPIServer()
	g.close()
	f()
	require.NoError(g.t, g.servers.StartAPIServer(g.t.Context()))
	g.open()
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, passes := range g.holding(r) {
		select {
		case <-passes:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	g.proxy.ServeHTTP(w, r)
}

func (g *gate) holding(r *http.Request) (all []chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for held, passes := range g.held {
		if held.method == r.Method && strings.HasSuffix(r.URL.Path, held.path) {
			all = append(all, passes)
		}
	}
	return all
}

// hold keeps requests from the server, and so their answers from the program, until release.
func (g *gate) hold(method, path string) (release func()) {
	held, passes := &request{method, path}, make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held[held] = passes
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.held, held)
		close(passes)
	})
}

// cut ends all connections. New ones are accepted.
func (g *gate) cut() { g.server.CloseClientConnections() }

// kubeconfig returns a file for the program.
func (g *gate) kubeconfig() string {
	g.t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["gate"] = &clientcmdapi.Cluster{Server: "https://" + g.address,
		CertificateAuthorityData: g.servers.Config("").CAData}
	config.AuthInfos["weak"] = &clientcmdapi.AuthInfo{Token: cluster.WeakToken}
	config.Contexts["gate"] = &clientcmdapi.Context{Cluster: "gate", AuthInfo: "weak"}
	config.CurrentContext = "gate"
	file := filepath.Join(g.t.TempDir(), "kubeconfig")
	require.NoError(g.t, clientcmd.WriteToFile(*config, file))
	return file
}

// weakRole is the name of the programs' role, and of what grants it.
const weakRole = "programs"

// rule is a permission.
func rule(group string, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources),
		Verbs: strings.Fields(verbs)}
}

// allow gives all programs behind gates these permissions, and takes all others from them.
func (g *gate) allow(rules ...rbacv1.PolicyRule) {
	g.t.Helper()
	ctx, rbac := g.t.Context(), g.admin.RbacV1()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: weakRole}, Rules: rules}
	_, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = rbac.ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
		require.NoError(g.t, err)
		return
	}
	require.NoError(g.t, err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: weakRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: weakRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "weak"}},
	}, metav1.CreateOptions{})
	require.NoError(g.t, err)
}

// mayNot waits until the server has noticed that the programs may not do this.
func (g *gate) mayNot(verb, group, resource string) {
	g.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "weak", ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "default", Verb: verb, Group: group, Resource: resource}}}
	require.EventuallyWithT(g.t, func(t *assert.CollectT) {
		answer, err := g.admin.AuthorizationV1().SubjectAccessReviews().Create(g.t.Context(),
			review, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.False(t, answer.Status.Allowed)
	}, patience, 50*time.Millisecond)
}

// limit forbids new objects of a resource in a namespace, until lift. It writes the status of the
// quota, too, as the controller of quotas does, which may not run.
func limit(
	t testing.TB, admin kubernetes.Interface, namespace string, resource corev1.ResourceName,
) (lift func()) {
	t.Helper()
	quotas := admin.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			resource: apiresource.MustParse("0")}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = quotas.Patch(t.Context(), "none", types.MergePatchType, fmt.Appendf(nil,
		`{"status": {"hard": {%[1]q: "0"}, "used": {%[1]q: "0"}}}`, resource),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	return func() {
		t.Helper()
		require.NoError(t, quotas.Delete(t.Context(), "none", metav1.DeleteOptions{}))
	}
}
