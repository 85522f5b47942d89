// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"example.com/informerstack/informer"
	"example.com/informerstack/realserver/cluster"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
)

// newShardedCluster starts a cluster with the feature gate ShardedListAndWatch.
func newShardedCluster(t *testing.T) *cluster.Cluster {
	return cluster.New(t, cluster.Options{
		APIServerArgs: []string{"--feature-gates=ShardedListAndWatch=true"},
	})
}

// quarter selects a part of the hash space.
const quarter = "shardRange(object.metadata.uid, '0x4000000000000000', '0x8000000000000000')"

func inQuarter(obj metav1.Object) bool {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, string(obj.GetUID())) // never fails
	return hash.Sum64()>>62 == 1
}

// follower is an informer of all objects, or of a quarter, on a link of its own.
type follower struct {
	informer.SharedIndexInformer
	name    string
	part    bool
	way     *link
	initial int64 // bytes until it was synced
}

func newFollower[T interface {
	informer.Object
	runtime.Object
}](t *testing.T, config *rest.Config, namespace string, part, streaming bool) *follower {
	way := newLink()
	config = way.config(config)
	config.DisableCompression = true
	options := informer.Options{Namespace: namespace}
	options.Reflector.UseWatchList = &streaming
	if part {
		options.WrapListerWatcher = func(
			_ context.Context, lw reflector.ListerWatcher, _ runtime.Object,
		) reflector.ListerWatcher {
			return quarterOf{lw.(*wire.ListWatch)}
		}
	}
	client := restClient(t, config, configMapResource)
	return &follower{
		SharedIndexInformer: informer.New[T](client, "configmaps", options),
		name:                fmt.Sprintf("%T streaming=%t", *new(T), streaming),
		part:                part, way: way,
	}
}

// quarterOf is a ListWatch of a quarter of the hashes.
type quarterOf struct{ *wire.ListWatch }

func (q quarterOf) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	options.ShardSelector = quarter
	return q.ListWatch.ListStream(ctx, options, each)
}

func (q quarterOf) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	options.ShardSelector = quarter
	return q.ListWatch.WatchWithContext(ctx, options)
}

// newFollowers returns those of every form, in pairs: all objects, and a quarter.
func newFollowers(t *testing.T, config *rest.Config, namespace string) []*follower {
	var all []*follower
	for _, streaming := range []bool{true, false} {
		for _, part := range []bool{false, true} {
			all = append(all,
				newFollower[*corev1.ConfigMap](t, config, namespace, part, streaming),
				newFollower[*unstructured.Unstructured](t, config, namespace, part, streaming),
				newFollower[*metav1.PartialObjectMetadata](t, config, namespace, part, streaming))
		}
	}
	return all
}

// A server with the feature gate sends each informer its part, and says so.
func TestShards(t *testing.T) {
	sharded := newShardedCluster(t)
	t.Run("bring their part", func(t *testing.T) { testParts(t, sharded) })
	t.Run("detected", func(t *testing.T) { testDetected(t, sharded, true) })
	t.Run("detected by default", func(t *testing.T) { testDetected(t, shared, false) })
}

// An informer of a quarter of the hashes receives the objects of this quarter and nothing else, by
// LIST, WATCH and streaming list, and about a quarter of the bytes.
func testParts(t *testing.T, c *cluster.Cluster) {
	const count = 400
	objects := newConfigMaps(t, c)
	keys := map[bool][]string{} // of the quarter, and of all
	last := ""                  // object of the quarter
	for i := range count {
		name := fmt.Sprint("map-", i)
		objects.create(name, nil)
		keys[false] = append(keys[false], objects.namespace+"/"+name)
		if inQuarter(objects.get(name)) {
			keys[true] = append(keys[true], objects.namespace+"/"+name)
			last = name
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	followers := newFollowers(t, c.Config(cluster.AdminToken), objects.namespace)
	for _, f := range followers {
		go f.Run(ctx)
		require.NoError(t, informer.WaitForSync(ctx, f))
		require.ElementsMatch(t, keys[f.part], f.GetStore().ListKeys(), f.name)
		f.initial = f.way.Received.Load()
	}
	for i := range count {
		objects.change(fmt.Sprint("map-", i), "2")
	}
	objects.change(last, "3")
	version := objects.get(last).ResourceVersion
	for _, f := range followers {
		require.NoError(t, f.WaitForResourceVersion(ctx, version), f.name)
		require.ElementsMatch(t, keys[f.part], f.GetStore().ListKeys(), f.name)
	}
	requireQuarters(t, followers)
}

// requireQuarters compares the bytes that each part received with those of the whole.
func requireQuarters(t *testing.T, followers []*follower) {
	whole := map[string]*follower{}
	for _, f := range followers {
		if !f.part {
			whole[f.name] = f
			continue
		}
		all := whole[f.name]
		initial := float64(f.initial) / float64(all.initial)
		changes := float64(f.way.Received.Load()-f.initial) /
			float64(all.way.Received.Load()-all.initial)
		t.Logf("%s: %.2f of the initial %d bytes, %.2f of the changes", f.name, initial,
			all.initial, changes)
		require.InDelta(t, 0.25, initial, 0.12, f.name)
		require.InDelta(t, 0.25, changes, 0.12, f.name)
	}
}

// The metadata of a list of a built-in kind says whether the server knows the selector.
func testDetected(t *testing.T, c *cluster.Cluster, want bool) {
	objects := newConfigMaps(t, c)
	objects.create("a", nil)
	client := restClient(t, c.Config(cluster.AdminToken), configMapResource)
	for _, newObject := range []wire.NewObject{
		func() runtime.Object { return &corev1.ConfigMap{} },          // in protobuf
		func() runtime.Object { return &unstructured.Unstructured{} }, // in JSON
	} {
		lw := wire.NewListWatch(client, "configmaps", objects.namespace, newObject, wire.Options{
			Modify: func(o *metav1.ListOptions) { o.ShardSelector = quarter },
		})
		m, err := lw.ListStream(t.Context(), metav1.ListOptions{},
			func(runtime.Object) error { return nil })
		require.NoError(t, err)
		require.Equal(t, want, m.ShardInfo != nil && m.ShardInfo.Selector == quarter)
	}
}
