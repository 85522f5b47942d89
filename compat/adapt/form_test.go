// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/informer"
	"example.com/informerstack/store/compact"
)

type placement struct {
	compact.Meta
	Node string
}

func placementOf(pod *corev1.Pod) *placement { return &placement{Node: pod.Spec.NodeName} }

// A transform that is set runs before the form packs its result; handlers, store and indexes of
// client-go's types have the objects of the form.
func TestNewSharedIndexInformerWithOptions_Form(t *testing.T) {
	forms := map[string]struct {
		form compact.Form
		node func(obj any) string
	}{
		"compressed": {compact.Compressed(),
			func(obj any) string { return obj.(*corev1.Pod).Spec.NodeName }},
		"summary": {compact.Summary(placementOf),
			func(obj any) string { return obj.(*placement).Node }},
	}
	for name, f := range forms {
		for _, set := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					i := adapt.NewSharedIndexInformerWithOptions(
						newSource(t, pod("a", "n1")), &corev1.Pod{}, informer.Options{
							Form:     f.form,
							Indexers: adapt.CoreIndexers(cache.Indexers{"node": byNode}),
						})
					want := "n1"
					if set {
						want = "transformed"
						require.NoError(t, i.SetTransform(toNode(want)))
					}
					var added []string
					_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
						AddFunc: func(obj any) { added = append(added, f.node(obj)) },
					})
					require.NoError(t, err)
					defer run(t, i)()
					synctest.Wait()
					found, err := i.GetIndexer().ByIndex("node", want)
					require.NoError(t, err)
					require.Len(t, found, 1)
					assert.Equal(t, want, f.node(found[0]))
					assert.Equal(t, []string{want}, added)
				})
			})
		}
	}
}
