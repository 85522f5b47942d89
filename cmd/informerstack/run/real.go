// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/client"
	"example.com/informerstack/cmd/informerstack/realserver"
)

// startReal starts the server of --real, if it is given, and makes it the cluster to watch.
func (o *options) startReal(ctx context.Context, stderr io.Writer) (stop func(), err error) {
	if !o.real {
		return func() {}, nil
	}
	server, err := realserver.Start(ctx, []string{"--kubeconfig=" + kubeconfigName}, stderr, stderr)
	if err != nil {
		return nil, err
	}
	o.cluster.Kubeconfig = kubeconfigName
	o.reconcile = o.reconcile || o.cluster.Resource == "configmaps"
	return server.Close, nil
}

// writer writes the ConfigMaps of a workload by requests, until ctx is done.
type writer struct {
	ctx  context.Context
	maps *client.Client[*corev1.ConfigMap]
}

func newWriter(ctx context.Context, config *rest.Config) (*writer, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // the workload has a rate of its own
	maps, err := client.New[*corev1.ConfigMap](config,
		corev1.SchemeGroupVersion.WithResource("configmaps"), client.Options{})
	if err != nil {
		return nil, fmt.Errorf("make the workload's client: %w", err)
	}
	return &writer{ctx, maps}, nil
}

// Create implements configmaps.Writer.
func (w *writer) Create(obj apitest.Object) error {
	_, err := w.maps.Namespace(obj.GetNamespace()).Create(w.ctx, obj.(*corev1.ConfigMap),
		metav1.CreateOptions{})
	return err
}

// Get implements configmaps.Writer.
func (w *writer) Get(obj apitest.Object) error {
	stored, err := w.maps.Namespace(obj.GetNamespace()).Get(w.ctx, obj.GetName(),
		metav1.GetOptions{})
	if err == nil {
		*obj.(*corev1.ConfigMap) = *stored
	}
	return err
}

// Update implements configmaps.Writer.
func (w *writer) Update(obj apitest.Object) error {
	_, err := w.maps.Namespace(obj.GetNamespace()).Update(w.ctx, obj.(*corev1.ConfigMap),
		metav1.UpdateOptions{})
	return err
}

// Delete implements configmaps.Writer.
func (w *writer) Delete(obj apitest.Object) error {
	return w.maps.Namespace(obj.GetNamespace()).Delete(w.ctx, obj.GetName(),
		metav1.DeleteOptions{})
}
