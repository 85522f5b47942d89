// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workload changes a ConfigMap on the embedded server every few seconds.
type workload struct{ client client.Client }

// Start implements manager.Runnable.
func (w workload) Start(ctx context.Context) error {
	ticker := time.NewTicker(3 * time.Second)
	defer ticker.Stop()
	greeting := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
		Name: "greeting"}}
	if err := w.client.Create(ctx, greeting); err != nil {
		return fmt.Errorf("create configmap: %w", err)
	}
	for n := 1; ; n++ {
		patch := client.MergeFrom(greeting.DeepCopy())
		greeting.Data = map[string]string{"text": fmt.Sprintf("hello, for the %d. time", n)}
		if err := w.client.Patch(ctx, greeting, patch); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("patch configmap: %w", err)
		}
		klog.FromContext(ctx).Info("Changed", "configMap", klog.KObj(greeting), "text",
			greeting.Data["text"])
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
