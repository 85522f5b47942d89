// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// New returns a lock of the given kind on the object namespace/name. coreClient must be a client of
// the core group's v1, coordinationClient one of coordination.k8s.io/v1; a client that the kind
// does not need may be nil.
//
// Source: tools/leaderelection/resourcelock/interface.go New
func New(
	lockType, namespace, name string, coreClient, coordinationClient rest.Interface,
	config ResourceLockConfig,
) (Interface, error) {
	return NewWithLabels(lockType, namespace, name, coreClient, coordinationClient, config, nil)
}

// NewWithLabels is New for a lock that puts the holder's labels on the object.
//
// Source: tools/leaderelection/resourcelock/interface.go NewWithLabels
func NewWithLabels(
	lockType, namespace, name string, coreClient, coordinationClient rest.Interface,
	config ResourceLockConfig, labels map[string]string,
) (Interface, error) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	endpoints := &EndpointsLock{
		EndpointsMeta: meta, Client: EndpointsClient(coreClient, namespace), LockConfig: config,
		Labels: labels,
	}
	configMap := &ConfigMapLock{
		ConfigMapMeta: meta, Client: ConfigMapClient(coreClient, namespace), LockConfig: config,
		Labels: labels,
	}
	lease := &LeaseLock{
		LeaseMeta: meta, Client: LeaseClient(coordinationClient, namespace), LockConfig: config,
		Labels: labels,
	}

	var lock Interface
	core, coordination := true, true // which clients the lock needs
	switch lockType {
	case EndpointsResourceLock:
		lock, coordination = endpoints, false
	case ConfigMapsResourceLock:
		lock, coordination = configMap, false
	case LeasesResourceLock:
		lock, core = lease, false
	case EndpointsLeasesResourceLock:
		lock = &MultiLock{Primary: endpoints, Secondary: lease}
	case ConfigMapsLeasesResourceLock:
		lock = &MultiLock{Primary: configMap, Secondary: lease}
	default:
		//lint:ignore ST1005 client-go's text
		return nil, fmt.Errorf("Invalid lock-type %s", lockType)
	}
	if core && coreClient == nil || coordination && coordinationClient == nil {
		return nil, fmt.Errorf("make %s lock %s/%s: a client is missing", lockType, namespace, name)
	}
	return lock, nil
}

// NewFromKubeconfig is New with clients made from kubeconfig, which is not changed. The timeout of
// a request is half of renewDeadline, and at least one second, so that one request that hangs does
// not cost the lease.
//
// Source: tools/leaderelection/resourcelock/interface.go NewFromKubeconfig
func NewFromKubeconfig(
	lockType, namespace, name string, config ResourceLockConfig, kubeconfig *rest.Config,
	renewDeadline time.Duration,
) (Interface, error) {
	if kubeconfig == nil {
		return nil, errors.New("make lock: kubeconfig is nil")
	}
	own := rest.AddUserAgent(rest.CopyConfig(kubeconfig), "leader-election")
	own.Timeout = max(renewDeadline/2, time.Second)
	httpClient, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("make %s lock %s/%s: %w", lockType, namespace, name, err)
	}
	coreClient, err := clientFor(own, httpClient,
		"/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("make %s lock %s/%s: %w", lockType, namespace, name, err)
	}
	coordinationClient, err := clientFor(own, httpClient,
		"/apis", coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme)
	if err != nil {
		return nil, fmt.Errorf("make %s lock %s/%s: %w", lockType, namespace, name, err)
	}
	return New(lockType, namespace, name, coreClient, coordinationClient, config)
}

func clientFor(
	config *rest.Config, httpClient *http.Client, apiPath string, version schema.GroupVersion,
	register func(*runtime.Scheme) error,
) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := register(scheme); err != nil {
		return nil, err
	}
	own := *config
	own.APIPath = apiPath
	own.GroupVersion = &version
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientForConfigAndClient(&own, httpClient)
}
