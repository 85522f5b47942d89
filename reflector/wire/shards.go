// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrShardsUnknown is the error of DetectShards if an empty collection shows nothing.
var ErrShardsUnknown = errors.New("the collection is empty, so it does not show whether the " +
	"server knows shard selectors")

// noShard selects the objects with one hash, which practically no object has.
const noShard = "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000001')"

// DetectShards reports whether the server sends only the objects that ListOptions.ShardSelector
// selects, in lists, watches and streaming lists of resource in namespace, or in all for "". A
// server without the feature gate ShardedListAndWatch, which is off by default, ignores the
// selector and sends all objects.
//
// It asks the server with a LIST of at most one object, with a selector that practically matches
// nothing. The metadata of the answer repeats the selector if the kind is built in. Lists of custom
// resources, lists of metadata alone, and watches do not say whether they are complete. So if the
// answer is empty and does not repeat the selector, a second LIST, of the same resourceVersion and
// without a selector, shows whether there is an object. If there is not, the error wraps
// ErrShardsUnknown.
//
// The API server at the other end of the connection answers; others of the same cluster may have
// other feature gates. A program must check each object that it receives. It may send a selector to
// any server.
func DetectShards(ctx context.Context, client Getter, resource, namespace string) (bool, error) {
	knows, err := detectShards(ctx, client, resource, namespace)
	if err != nil {
		return false, fmt.Errorf("detect shards of %s: %w", resource, err)
	}
	return knows, nil
}

func detectShards(ctx context.Context, client Getter, resource, namespace string) (bool, error) {
	m, isEmpty, err := listOne(ctx, client, resource, namespace,
		metav1.ListOptions{Limit: 1, ShardSelector: noShard})
	switch {
	case err != nil:
		return false, err
	case m.ShardInfo != nil:
		return true, nil
	case !isEmpty:
		return false, nil
	}
	_, isEmpty, err = listOne(ctx, client, resource, namespace, metav1.ListOptions{
		Limit: 1, ResourceVersion: m.ResourceVersion,
		ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if err == nil && isEmpty {
		err = ErrShardsUnknown
	}
	return err == nil, err
}

// listOne lists objects until the first one.
func listOne(
	ctx context.Context, client Getter, resource, namespace string, options metav1.ListOptions,
) (m metav1.ListMeta, isEmpty bool, err error) {
	isEmpty = true
	newObject := func() runtime.Object { return &unstructured.Unstructured{} }
	lw := NewListWatch(client, resource, namespace, newObject, Options{})
	m, err = lw.ListStream(ctx, options, func(runtime.Object) error {
		isEmpty = false
		return errOneIsEnough
	})
	if err == errOneIsEnough {
		err = nil
	}
	return m, isEmpty, err
}

var errOneIsEnough = errors.New("one object is enough")
