// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fault is something that goes wrong, and is over when strike returns: at the moment from which
// the server has answered the informers again.
type fault struct {
	name   string
	strike func(w *world) (answered time.Time)
}

// sequences run at the same time, each with a server and informers of its own. Faults of the server,
// which make informers back off, take turns with those of the network.
var sequences = map[string][]fault{
	"A": {
		{"API server killed, started after 10 s", killFor(10 * time.Second)},
		{"connections reset", reset},
		{"RBAC revoked for 20 s", revokeFor(20 * time.Second)},
		{"connections lost, new ones work after 50 s", loseFor(50 * time.Second)},
	},
	"B": {
		{"API server killed, started after 40 s", killFor(40 * time.Second)},
		{"connections stalled for 60 s", stallFor(60 * time.Second)},
		{"429 for 20 s", throttleFor(20 * time.Second)},
	},
}

// killFor kills the API server. It is down for d, and for the seconds that it takes to start.
func killFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.cluster.KillAPIServer()
		w.wait(d)
		started := make(chan error)
		go func() { started <- w.cluster.StartAPIServer(w.t.Context()) }()
		answered := w.answers(isNil)
		require.NoError(w.t, <-started)
		return answered
	}
}

// revokeFor takes the permission to list and watch from the informers, and cuts their watches,
// because the server does not end a watch when the permission ends.
func revokeFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		bindings := w.admin.RbacV1().RoleBindings(w.namespace)
		require.NoError(w.t, bindings.Delete(w.t.Context(), informerRole, metav1.DeleteOptions{}))
		w.answers(apierrors.IsForbidden)
		w.eachLink((*link).reset)
		w.wait(d)
		w.grant()
		return w.answers(isNil)
	}
}

const informerRole = "informers"

// createRole makes the role that grant binds: what an informer needs.
func (w *world) createRole() {
	_, err := w.admin.RbacV1().Roles(w.namespace).Create(w.t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: informerRole},
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// grant lets the informers list and watch.
func (w *world) grant() {
	_, err := w.admin.RbacV1().RoleBindings(w.namespace).Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: informerRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: informerRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "weak"}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// throttleFor lets every request be answered with 429, by a gateway in front of the server.
func throttleFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		certificate, err := w.cluster.Certificate()
		require.NoError(w.t, err)
		gateway := httptest.NewUnstartedServer(http.HandlerFunc(tooManyRequests))
		gateway.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		gateway.EnableHTTP2 = true
		gateway.Config.ErrorLog = log.New(io.Discard, "", 0) // connections are reset in the middle
		gateway.StartTLS()
		defer gateway.Close()
		w.eachLink(func(l *link) { l.redirect(gateway.Listener.Addr().String()) })
		w.wait(d)
		w.eachLink(func(l *link) { l.redirect("") })
		return time.Now()
	}
}

// tooManyRequests answers as an API server does that has more requests than it can queue.
func tooManyRequests(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
}

func reset(w *world) time.Time {
	answered := time.Now()
	w.eachLink((*link).reset)
	return answered
}

// stallFor is longer than the 45 s after which an HTTP/2 client gives a silent connection up.
func stallFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.eachLink((*link).stall)
		w.wait(d)
		w.eachLink((*link).release)
		return time.Now()
	}
}

// loseFor lasts until the clients have noticed, after 45 s.
func loseFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.eachLink((*link).lose)
		w.wait(d)
		w.eachLink((*link).release)
		return time.Now()
	}
}

func isNil(err error) bool { return err == nil }
