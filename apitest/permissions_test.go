// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
)

// robot returns a client with a token of the service account robot in the namespace default.
func robot(t *testing.T, s *apitest.Server) kubernetes.Interface {
	ctx := t.Context()
	admin := kubernetes.NewForConfigOrDie(config(s))
	accounts := admin.CoreV1().ServiceAccounts("default")
	_, err := accounts.Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	require.NoError(t, err)
	c := config(s)
	c.BearerToken = token.Status.Token
	c.UserAgent = "robot"
	return kubernetes.NewForConfigOrDie(c)
}

func whoami(client kubernetes.Interface) (string, error) {
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(context.Background(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// work makes one request of each kind that PolicyRules distinguishes.
func work(ctx context.Context, client kubernetes.Interface) error {
	maps := client.CoreV1().ConfigMaps("default")
	_, err := maps.List(ctx, metav1.ListOptions{})
	if err == nil {
		_, err = maps.Apply(ctx, corev1ac.ConfigMap("a", "default"),
			metav1.ApplyOptions{FieldManager: "m"})
	}
	if err == nil {
		_, err = client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	}
	if err == nil {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}
		_, err = client.CoordinationV1().Leases("default").Update(ctx, lease,
			metav1.UpdateOptions{})
	}
	if err == nil {
		_, err = client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "robot",
			&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	}
	return err
}

// The rules that PolicyRules returns are enough for the same requests, and without any one of
// their verbs they are not.
func TestPolicyRules_AreMinimal(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme, ManagedFields: true})
	client := robot(t, s)
	_, err := whoami(client)
	require.NoError(t, err)
	require.NoError(t, work(t.Context(), client))
	rules := apitest.PolicyRules(s.Requests(apitest.Match{If: func(r apitest.Request) bool {
		return r.Header.Get("User-Agent") == "robot"
	}}))
	require.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"create", "list", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
			Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			Verbs: []string{"create", "update"}},
	}, rules)

	try := func(rules []rbacv1.PolicyRule) error {
		s := start(t, apitest.Options{Scheme: scheme.Scheme, RBAC: true})
		client := robot(t, s)
		name := metav1.ObjectMeta{Namespace: "default", Name: "robot"}
		require.NoError(t, s.Create(&rbacv1.Role{ObjectMeta: name, Rules: rules}))
		require.NoError(t, s.Create(&rbacv1.RoleBinding{ObjectMeta: name,
			RoleRef:  rbacv1.RoleRef{Kind: "Role", Name: "robot"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot"}}}))
		return work(t.Context(), client)
	}
	assert.NoError(t, try(rules))
	for i, rule := range rules {
		for j, verb := range rule.Verbs {
			less := slices.Clone(rules)
			less[i].Verbs = slices.Delete(slices.Clone(rule.Verbs), j, j+1)
			assert.True(t, apierrors.IsForbidden(try(less)), "%s of %s", verb, rule.Resources)
		}
	}
}

// A user with the roles of a test sees the same as on a cluster; client-go sends reviews in
// protobuf and in JSON.
func TestRBAC_Reviews(t *testing.T) {
	for _, contentType := range []string{"", "application/json"} {
		s := start(t, apitest.Options{Scheme: scheme.Scheme, RBAC: true})
		c := config(s)
		c.ContentType = contentType
		c.Impersonate = rest.ImpersonationConfig{UserName: "ann", Groups: []string{"team"},
			UID: "7", Extra: map[string][]string{"a/B": {"x"}}}
		client := kubernetes.NewForConfigOrDie(c)
		self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
			&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, authenticationv1.UserInfo{Username: "ann", UID: "7",
			Groups: []string{"team", "system:authenticated"},
			Extra:  map[string]authenticationv1.ExtraValue{"a/b": {"x"}}}, self.Status.UserInfo)
		ask := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list",
					Resource: "pods"}}}
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), ask,
			metav1.CreateOptions{})
		require.NoError(t, err)
		assert.False(t, review.Status.Allowed)
		_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		require.NoError(t, s.Create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "team"},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: "Group", Name: "team"}}}))
		review, err = client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), ask,
			metav1.CreateOptions{})
		require.NoError(t, err)
		assert.True(t, review.Status.Allowed)
		_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	}
}

// Impersonation without a user name is wrong, with permissions and without.
func TestImpersonation_NeedsAName(t *testing.T) {
	for _, rbac := range []bool{false, true} {
		s := start(t, apitest.Options{RBAC: rbac})
		for header, value := range map[string]string{
			"Impersonate-Group": "team", "Impersonate-Uid": "7", "Impersonate-Extra-Scopes": "a",
		} {
			request, err := http.NewRequestWithContext(t.Context(), "GET",
				s.URL+"/api/v1/namespaces", nil)
			require.NoError(t, err)
			request.Header.Set(header, value)
			response, err := s.Client().Do(request)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, 400, response.StatusCode, "%s, RBAC %t", header, rbac)
			assert.Contains(t, string(body), "set Impersonate-User")
		}
	}
}

// A token ends with its time and with its account, even if another account has its name.
func TestToken_Ends(t *testing.T) {
	bubble(t, apitest.Options{Scheme: scheme.Scheme, RBAC: true}, func(t *testing.T,
		s *apitest.Server) {
		client := robot(t, s)
		user, err := whoami(client)
		require.NoError(t, err)
		assert.Equal(t, "system:serviceaccount:default:robot", user)
		time.Sleep(time.Hour + time.Second)
		_, err = whoami(client)
		assert.True(t, apierrors.IsUnauthorized(err), "%v", err)

		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name: "robot"}}
		require.NoError(t, s.Delete(account))
		client = robot(t, s)
		_, err = whoami(client)
		require.NoError(t, err)
		require.NoError(t, s.Delete(account))
		account.UID, account.ResourceVersion = "", ""
		require.NoError(t, s.Create(account))
		_, err = whoami(client)
		assert.True(t, apierrors.IsUnauthorized(err), "%v", err)
	})
}

// Without Options.RBAC, a token that the server has not issued is no reason to refuse a request.
func TestToken_OfAnotherServer(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	c := config(s)
	c.BearerToken = "eyJhbGciOiJub25lIn0.e30."
	user, err := whoami(kubernetes.NewForConfigOrDie(c))
	require.NoError(t, err)
	assert.Equal(t, "admin", user)
}

// A request for logs and the like is answered with a sentence that kubectl prints.
func TestAbsent(t *testing.T) {
	s := start(t, apitest.Options{})
	client := kubernetes.NewForConfigOrDie(config(s))
	_, err := client.CoreV1().Pods("default").GetLogs("a", &corev1.PodLogOptions{}).Stream(
		t.Context())
	assert.EqualError(t, err, "apitest: no container runs here, so a pod has no logs")
	for path, why := range map[string]string{
		"pods/a/exec":              "no command can run",
		"services/s/proxy/metrics": "a service cannot be reached",
	} {
		a := send(t, s, "GET", "/api/v1/namespaces/default/"+path, "", "")
		assert.Equal(t, 501, a.code, path)
		assert.Contains(t, fmt.Sprint(a), why)
	}
	assert.Equal(t, 404, send(t, s, "GET", "/api/v1/namespaces/default/pods/a/other", "", "").code)
}
