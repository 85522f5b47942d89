// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"example.com/informerstack/controller"
	"example.com/informerstack/store"
)

// checksumName is the label that asks for a checksum, and the annotation that holds it.
const checksumName = "informerstack.example.com/checksum"

// checksumKeeper keeps the annotation of each labelled ConfigMap equal to the checksum of its data. One that lost its label
// loses the annotation too.
type checksumKeeper struct {
	client rest.Interface
	lister store.Lister[*unstructured.Unstructured]
}

// wantsChecksum selects the ConfigMaps that are labelled.
func wantsChecksum(obj any) bool {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	m, err := meta.Accessor(obj)
	return err == nil && m.GetLabels()[checksumName] == "true"
}

// reconcile looks at the cache only, and writes only what differs. The write names the resourceVersion it was decided on,
// so that one who was faster makes it fail: then the change is on its way here, and the key is tried again.
func (k checksumKeeper) reconcile(ctx context.Context, key string) (controller.Result, error) {
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		return controller.Result{}, controller.TerminalError(err)
	}
	configMap, err := k.lister.ByNamespace(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // deleted, and its annotation with it
	}
	if err != nil {
		return controller.Result{}, err
	}
	var want any // nil removes the annotation
	if wantsChecksum(configMap) {
		want = checksum(configMap)
	}
	got, annotated := configMap.GetAnnotations()[checksumName]
	if annotated == (want != nil) && (!annotated || got == want) {
		return controller.Result{}, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": configMap.GetResourceVersion(),
		"annotations":     map[string]any{checksumName: want},
	}})
	if err != nil {
		return controller.Result{}, fmt.Errorf("patch configmap %s: %w", key, err)
	}
	err = k.client.Patch(types.MergePatchType).Namespace(namespace).Resource("configmaps").Name(name).Body(patch).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // deleted meanwhile
	}
	return controller.Result{}, err
}

// checksum is the SHA-256 of the data, whatever its order.
func checksum(configMap *unstructured.Unstructured) string {
	content, err := json.Marshal([]any{configMap.Object["data"], configMap.Object["binaryData"]}) // maps are marshalled sorted
	if err != nil {
		panic(fmt.Sprintf("decoded JSON does not encode: %v", err))
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
