// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"example.com/informerstack/informer"
	"example.com/informerstack/informer/namespaces"
	"example.com/informerstack/realserver/cluster"
	"example.com/informerstack/store"
)

const tenantCount = 300

// tenants are namespaces with a ConfigMap each. A program without rights of its own follows those
// with the label, and may read those with a RoleBinding.
type tenants struct {
	t      *testing.T
	admin  kubernetes.Interface
	role   string
	names  []string
	random *rand.Rand

	labelled, bound map[string]bool
}

func newTenants(t *testing.T) *tenants {
	w := &tenants{
		t: t, admin: kubernetes.NewForConfigOrDie(shared.Config(cluster.AdminToken)),
		random:   rand.New(rand.NewPCG(1, 2)),
		labelled: map[string]bool{}, bound: map[string]bool{},
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "tenant-reader-"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"list", "watch"},
		}},
	}
	role, err := w.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	w.role = role.Name
	for i := range tenantCount {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			GenerateName: fmt.Sprintf("tenant-%d-", i),
		}}
		namespace, err := w.admin.CoreV1().Namespaces().Create(t.Context(), namespace,
			metav1.CreateOptions{})
		require.NoError(t, err)
		w.names = append(w.names, namespace.Name)
		w.write(namespace.Name, "0")
		w.bind(namespace.Name, i%3 > 0)
		w.label(namespace.Name, i%4 > 0)
	}
	return w
}

// write creates or changes the ConfigMap of a namespace.
func (w *tenants) write(namespace, value string) {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"},
		Data:       map[string]string{"value": value},
	}
	client := w.admin.CoreV1().ConfigMaps(namespace)
	_, err := client.Update(w.t.Context(), m, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(w.t.Context(), m, metav1.CreateOptions{})
	}
	require.NoError(w.t, err)
}

// label lets the informer follow a namespace, or not.
func (w *tenants) label(namespace string, follow bool) {
	w.labelled[namespace] = follow
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"follow": fmt.Sprint(follow)},
	}}
	_, err := w.admin.CoreV1().Namespaces().Update(w.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// bind gives the program the role in a namespace, or takes it away.
func (w *tenants) bind(namespace string, allow bool) {
	w.bound[namespace] = allow
	client := w.admin.RbacV1().RoleBindings(namespace)
	if !allow {
		err := client.Delete(w.t.Context(), "reader", metav1.DeleteOptions{})
		require.True(w.t, err == nil || apierrors.IsNotFound(err), "%v", err)
		return
	}
	_, err := client.Create(w.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.role,
		},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "weak",
		}},
	}, metav1.CreateOptions{})
	require.True(w.t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
}

// readable returns what the informer must hold: the versions of the ConfigMaps in the namespaces
// that it follows and may read.
func (w *tenants) readable() map[string]string {
	list, err := w.admin.CoreV1().ConfigMaps("").List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	all := map[string]string{}
	for i := range list.Items {
		m := &list.Items[i]
		if w.labelled[m.Namespace] && w.bound[m.Namespace] && m.Name == "settings" {
			all[m.Namespace] = m.ResourceVersion
		}
	}
	return all
}

// held is what a handler was notified of, by namespace.
type held struct {
	mu   sync.Mutex
	maps map[string]string
}

func (h *held) set(obj any) {
	m := obj.(*corev1.ConfigMap)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.maps[m.Namespace] = m.ResourceVersion
}

func (h *held) remove(obj any) {
	name, _ := store.DeletionHandlingObjectToName(obj)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.maps, name.Namespace)
}

// in returns what is held in namespaces.
func (h *held) in(namespaces map[string]bool) map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := maps.Clone(h.maps)
	maps.DeleteFunc(all, func(namespace, _ string) bool { return !namespaces[namespace] })
	return all
}

// bindAll gives the program the role in the whole cluster, until unbind is called.
func (w *tenants) bindAll() (unbind func()) {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "reader-"},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.role,
		},
		Subjects: []rbacv1.Subject{{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "weak",
		}},
	}
	client := w.admin.RbacV1().ClusterRoleBindings()
	binding, err := client.Create(w.t.Context(), binding, metav1.CreateOptions{})
	require.NoError(w.t, err)
	unbind = sync.OnceFunc(func() {
		err := client.Delete(context.Background(), binding.Name, metav1.DeleteOptions{})
		require.NoError(w.t, err)
	})
	w.t.Cleanup(unbind)
	return unbind
}

// follow runs the informer of the program until the test ends, and waits until it has synced.
func (w *tenants) follow(clusterAbove int) (
	*namespaces.Informer[*corev1.ConfigMap], *held,
) {
	ctx, cancel := context.WithCancel(w.t.Context())
	all := informer.New[*corev1.Namespace](w.admin.CoreV1().RESTClient(), "namespaces",
		informer.Options{})
	config := shared.Config(cluster.WeakToken)
	config.QPS = -1
	settings := namespaces.New[*corev1.ConfigMap](
		kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient(), "configmaps",
		namespaces.Options{
			Options:      informer.Options{FieldSelector: "metadata.name=settings"},
			Tolerate:     namespaces.Forbidden,
			ClusterAbove: clusterAbove,
		})
	require.NoError(w.t,
		settings.Select(all, labels.SelectorFromSet(labels.Set{"follow": "true"})))
	got := &held{maps: map[string]string{}}
	_, err := settings.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc: got.set, UpdateFunc: func(_, obj any) { got.set(obj) }, DeleteFunc: got.remove,
	})
	require.NoError(w.t, err)
	var running sync.WaitGroup
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() { all.Run(ctx) })
	running.Go(func() { settings.Run(ctx) })
	syncing, stop := context.WithTimeout(ctx, patience)
	defer stop()
	require.NoError(w.t, informer.WaitForSync(syncing, settings))
	return settings, got
}

// 300 namespaces come and go, and so do the rights to read them, while their objects change. The
// informer ends with what it follows and may read, and nothing of a namespace that it does not
// follow any more. (The server does not end a watch when the right is taken away.)
func TestNamespaces_ComeAndGoUnderLoad(t *testing.T) {
	w := newTenants(t)
	settings, got := w.follow(0)
	for i := range 2000 {
		name := w.names[w.random.IntN(len(w.names))]
		switch i % 8 {
		case 0:
			w.label(name, w.random.IntN(2) == 0)
		case 1:
			w.bind(name, w.random.IntN(2) == 0)
		default:
			w.write(name, fmt.Sprint(i))
		}
	}
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		both := map[string]bool{}
		for name := range w.labelled {
			both[name] = w.bound[name] || !w.labelled[name]
		}
		assert.Equal(c, w.readable(), got.in(both))
		assert.NoError(c, settings.Health().Fresh(time.Now(), 2*time.Minute))
	}, patience, time.Second)
	for _, status := range settings.Namespaces() {
		assert.True(t, w.labelled[status.Namespace], status.Namespace)
		if status.LeftOut {
			assert.False(t, w.bound[status.Namespace], status.Namespace)
		}
	}
}

// 300 namespaces come and go while their objects change, and one watch of the cluster takes the
// place of theirs meanwhile. No change is lost. When the right to watch the cluster was taken away
// and the watch ends, the program follows each namespace alone that it may read.
func TestNamespaces_OneWatchOfTheCluster(t *testing.T) {
	w := newTenants(t)
	alone := maps.Clone(w.bound)
	for _, name := range w.names {
		w.bound[name] = true
	}
	every := maps.Clone(w.bound)
	unbind := w.bindAll()
	settings, got := w.follow(50)
	for i := 0; i < 1500 || i < 20_000 && settings.ClusterStatus().Namespaces == 0; i++ {
		name := w.names[w.random.IntN(len(w.names))]
		if i%8 == 0 {
			w.label(name, w.random.IntN(2) == 0)
		} else {
			w.write(name, fmt.Sprint(i))
		}
	}
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, w.readable(), got.in(every))
		assert.NoError(c, settings.Health().Fresh(time.Now(), 2*time.Minute))
		assert.Greater(c, settings.ClusterStatus().Namespaces, len(w.readable())-50)
	}, patience, time.Second)
	assert.NoError(t, settings.ClusterStatus().LastError)

	unbind()
	w.bound = alone
	restart(t) // a server does not end a watch because the right is gone
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, w.readable(), got.in(every))
		assert.NoError(c, settings.Health().Fresh(time.Now(), 2*time.Minute))
		assert.Zero(c, settings.ClusterStatus().Namespaces)
		assert.ErrorContains(c, settings.ClusterStatus().LastError, "forbidden")
	}, patience, time.Second)
}
