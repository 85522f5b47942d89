// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/informerstack/cmd/informerstack/run/cluster"
	"example.com/informerstack/store"
)

// hint returns what to print after the first list: why there may be nothing to see, or how to see
// more. It may be "".
func (o *options) hint(
	ctx context.Context, config *rest.Config, t cluster.Target, objects store.Store,
) string {
	keys := objects.ListKeys()
	resource := t.Resource.GroupResource()
	if o.cluster.Embedded() && resource.String() != "configmaps" {
		return fmt.Sprintf("The embedded server changes only configmaps. To see changes of %s, "+
			"make them with kubectl: see --serve.", resource)
	}
	if len(keys) > 0 {
		if _, exists, _ := objects.GetByKey(o.key); o.key != "" && !exists {
			return fmt.Sprintf("There is no object %s yet. A key is, for example, %s.",
				o.key, keys[0])
		}
		if o.key == "" && o.output == "text" {
			return fmt.Sprintf("To see how one of them was loaded, add --key %s.", keys[0])
		}
		return ""
	}
	n := unfiltered(ctx, config, t)
	switch {
	case n > 0 && t.Selector+t.FieldSelector != "":
		return fmt.Sprintf("No object matches the selector. Without it there are at least %d.", n)
	case n > 0 && o.sharing.count > 0:
		return "All objects are in shards of other processes."
	}
	where := "there"
	if t.Namespace != "" {
		where = "in namespace " + t.Namespace
	}
	if o.cluster.Embedded() && t.Namespace != "" && t.Namespace != metav1.NamespaceDefault {
		return fmt.Sprintf("There are no %s %s: the embedded server's are in namespace %s.",
			resource, where, metav1.NamespaceDefault)
	}
	return fmt.Sprintf("There are no %s %s yet. Lines follow when one is created.",
		resource, where)
}

// unfiltered returns a lower bound of the number of objects without the selectors.
func unfiltered(ctx context.Context, config *rest.Config, t cluster.Target) int {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return 0
	}
	list, err := client.Resource(t.Resource).Namespace(t.Namespace).
		List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0
	}
	n := len(list.Items)
	if more := list.GetRemainingItemCount(); more != nil {
		n += int(*more)
	}
	return n
}
