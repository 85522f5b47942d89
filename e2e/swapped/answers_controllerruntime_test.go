// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/e2e/cluster"
)

// An operator of controller-runtime answers, too; with its own queue it says that it cannot see it.
func TestSwapped_ControllerRuntimeManager_Answers(t *testing.T) {
	t.Setenv("INFORMERSTACK_DEVTOOLS", "127.0.0.1:0")
	servers := cluster.New(t, cluster.Options{})
	goWork := swap(t, "controllerruntime", "--devtools", "127.0.0.1:0")
	program := compile(t, "controllerruntime", goWork, "./manager")
	c := newCopies(t, servers)
	// A leader that cannot reach the server ends after two thirds of this.
	const lease = "--lease-duration=15s"
	first := c.start(program, "first", "--priority-queue=false", lease)
	first.leads(true)
	d := newDebugger(t, first.process)
	d.ask() // begins to record
	key := func(name string) string { return c.namespace + "/" + name }

	c.create("a", "1")
	c.isCopied("a", "1")
	d.answers(key("a"), `^queue configmap reconciled \S+/a \S+ ago, and it has not changed `+
		`since: it ended with Forget in \S+, because of: `)
	d.answers(key("a"), `because of: (initial list|add) of \S+/a at resourceVersion \d+, informer `+
		`SharedIndexInformer \*v1.ConfigMap, handler`)
	c.deleteCopy("a")
	c.isCopied("a", "1")
	d.answers(key("a"), `because of: delete of \S+/a at resourceVersion \d+, informer `+
		`SharedIndexInformer \*v1.Secret`)
	_, err := c.client.CoreV1().ConfigMaps(c.namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "unlabelled"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	d.answers(key("unlabelled"), `^a handler was called \S+ ago and added no key: `+
		`(initial list|add) of `)
	d.answers(key("missing"), `^no informer has \S+/missing \(`)

	second := c.start(program, "second", lease)
	second.leads(false)
	waiting := newDebugger(t, second.process)
	waiting.ask()
	c.update("a", "2")
	c.isCopied("a", "2")
	waiting.answers(key("a"), `this process does not lead \S+/copier \(\w+\): \S+ does`)
	first.process.Kill()
	second.leads(true)
	c.update("a", "3")
	c.isCopied("a", "3")
	waiting.answers(key("a"), `has added no key of any object to these queues: it may use another `+
		`goroutine, or a queue that is not shown, such as that of controller-runtime`)

	servers.KillAPIServer()
	waiting.answers(key("a"), `informer SharedIndexInformer \*v1.ConfigMap may be old: \d+ `+
		`failures? in a row, the last one .*connection refused`)
	require.NoError(t, servers.StartAPIServer(t.Context()))
}
