// SPDX-License-Identifier: Apache-2.0

// Package configmaps is the work of both ends of informerstack run on the embedded server: a client
// that creates, changes and deletes ConfigMaps, and what the controller does for them.
//
//	[Workload] -> API server -> the pipeline -> [Keeper] -> API server
//
// Read checksum.go (the controller's work) and workload.go (the changes, by chance or by the page
// of package lab); then go test -v ./cmd/informerstack/run/configmaps. Goroutines: one for each
// started Workload. Locking: a mutex of the Workload, held during its writes.
package configmaps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"example.com/informerstack/controller"
	"example.com/informerstack/store"
)

// Checksum is the label that requests a checksum, and the annotation that holds it.
const Checksum = "informerstack.example.com/checksum"

// Keeper keeps the annotation of each labelled ConfigMap equal to the checksum of its data.
// It removes the annotation from ConfigMaps without the label.
type Keeper struct {
	Client rest.Interface                           // of ConfigMaps, in unstructured JSON
	Lister store.Lister[*unstructured.Unstructured] // of the informer's store
	Writes *controller.Writes[string]               // notes the writes; may be nil
}

// WantsChecksum reports whether a ConfigMap has the label.
func WantsChecksum(obj any) bool {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	m, err := meta.Accessor(obj)
	return err == nil && m.GetLabels()[Checksum] == "true"
}

// Reconcile reads the cache only, and writes only if the annotation is wrong. The patch contains
// the resourceVersion that was read, so it fails if the object has changed since. Then the key is
// retried, and the cache receives the change meanwhile: see send.
func (k Keeper) Reconcile(ctx context.Context, key string) (controller.Result, error) {
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		return controller.Result{}, controller.TerminalError(err)
	}
	configMap, err := k.Lister.ByNamespace(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // deleted, together with its annotation
	}
	if err != nil {
		return controller.Result{}, err
	}
	var want any // nil removes the annotation
	if WantsChecksum(configMap) {
		want = checksum(configMap)
	}
	got, annotated := configMap.GetAnnotations()[Checksum]
	if annotated == (want != nil) && (!annotated || got == want) {
		return controller.Result{}, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": configMap.GetResourceVersion(),
		"annotations":     map[string]any{Checksum: want},
	}})
	if err != nil {
		return controller.Result{}, fmt.Errorf("patch configmap %s: %w", key, err)
	}
	err = k.send(ctx, key, configMap, patch)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // deleted meanwhile
	}
	return controller.Result{}, err
}

// send sends a patch of a copy from the cache, and notes it. Without Writes, every retry sends the
// patch of an old copy again; with it, the error is controller.ErrStale until the copy is newer.
func (k Keeper) send(
	ctx context.Context, key string, copied *unstructured.Unstructured, patch []byte,
) error {
	send := func() (metav1.Object, error) {
		answer := &unstructured.Unstructured{}
		return answer, k.Client.Patch(types.MergePatchType).Namespace(copied.GetNamespace()).
			Resource("configmaps").Name(copied.GetName()).Body(patch).Do(ctx).Into(answer)
	}
	if k.Writes == nil {
		_, err := send()
		return err
	}
	return k.Writes.Send(key, controller.Write{Copy: copied, Locked: true}, send)
}

// checksum returns the SHA-256 of the data. It does not depend on the order of keys.
func checksum(configMap *unstructured.Unstructured) string {
	data := []any{configMap.Object["data"], configMap.Object["binaryData"]}
	content, err := json.Marshal(data) // sorts the keys of maps
	if err != nil {
		panic(fmt.Sprintf("decoded JSON does not encode: %v", err))
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
