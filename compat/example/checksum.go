// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// checksumAnnotation holds the checksum of a ConfigMap's data.
const checksumAnnotation = "example.com/checksum"

// checksumKeeper keeps the annotation equal to the checksum of the data. Its client reads from the
// manager's cache.
type checksumKeeper struct{ client client.Client }

// Reconcile implements reconcile.Reconciler.
func (k checksumKeeper) Reconcile(ctx context.Context,
	request reconcile.Request) (reconcile.Result, error) {
	var configMap corev1.ConfigMap
	if err := k.client.Get(ctx, request.NamespacedName, &configMap); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	want := checksum(&configMap)
	if configMap.Annotations[checksumAnnotation] == want {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(configMap.DeepCopy(), client.MergeFromWithOptimisticLock{})
	if configMap.Annotations == nil {
		configMap.Annotations = map[string]string{}
	}
	configMap.Annotations[checksumAnnotation] = want
	if err := k.client.Patch(ctx, &configMap, patch); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	log.FromContext(ctx).Info("Annotated", "checksum", want[:12])
	return reconcile.Result{}, nil
}

// checksum is the SHA-256 of the data.
func checksum(configMap *corev1.ConfigMap) string {
	// maps are marshalled sorted
	content, err := json.Marshal([]any{configMap.Data, configMap.BinaryData})
	if err != nil {
		panic(fmt.Sprintf("maps of strings do not encode: %v", err))
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
