// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/informerstack/e2e/fixture"
)

// informerAccount is the name of the informers' service account, of its role, and of what grants it
// the role.
const informerAccount = "informers"

// account is the service account of the informers. They read its token from a file, as programs in
// a cluster do. A token is bound to a Secret, so that it can be revoked.
type account struct {
	world     *world
	namespace string
	tokenFile string
	secret    string // the newest token is bound to it
}

func newAccount(w *world) *account {
	a := &account{
		world:     w,
		namespace: fixture.NewNamespace(w.t, w.admin),
		tokenFile: filepath.Join(w.t.TempDir(), "token"),
	}
	ctx := w.t.Context()
	_, err := w.admin.CoreV1().ServiceAccounts(a.namespace).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: informerAccount},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = w.admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: informerAccount},
		Rules: []rbacv1.PolicyRule{{
			Verbs:     []string{"list", "watch"},
			APIGroups: []string{w.kind.resource.Group},
			Resources: []string{w.kind.resource.Resource, missing.Resource},
		}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	a.write(a.issue())
	return a
}

func (a *account) config() *rest.Config {
	config := a.world.cluster.Config("")
	config.BearerTokenFile = a.tokenFile
	return config
}

// issue returns a new token, and the Secret that it is bound to.
func (a *account) issue() (token, secret string) {
	t, core := a.world.t, a.world.admin.CoreV1()
	bound, err := core.Secrets(a.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "token-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	request, err := core.ServiceAccounts(a.namespace).CreateToken(t.Context(), informerAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{
				Kind: "Secret", APIVersion: "v1", Name: bound.Name, UID: bound.UID,
			},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return request.Status.Token, bound.Name
}

// write replaces the token in the file.
func (a *account) write(token, secret string) {
	next := a.tokenFile + ".new"
	require.NoError(a.world.t, os.WriteFile(next, []byte(token), 0o600))
	require.NoError(a.world.t, os.Rename(next, a.tokenFile))
	a.secret = secret
}

// revoke makes the newest token invalid. The server remembers a valid token for up to 10 s.
func (a *account) revoke() {
	require.NoError(a.world.t, a.world.admin.CoreV1().Secrets(a.namespace).Delete(
		a.world.t.Context(), a.secret, metav1.DeleteOptions{}))
}

// grant gives the informers' account the permission to list and watch.
func (w *world) grant() {
	_, err := w.admin.RbacV1().ClusterRoleBindings().Create(w.t.Context(),
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: informerAccount},
			RoleRef: rbacv1.RoleRef{
				APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: informerAccount,
			},
			Subjects: []rbacv1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: w.account.namespace,
				Name: informerAccount,
			}},
		}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// deny takes it away.
func (w *world) deny() {
	require.NoError(w.t, w.admin.RbacV1().ClusterRoleBindings().Delete(w.t.Context(),
		informerAccount, metav1.DeleteOptions{}))
}
