// SPDX-License-Identifier: Apache-2.0

// Package clientgo is the operator of the folder above, written with client-go.
package clientgo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/informerstack/compat/example/operator/api"
)

const ownerIndex = "owner"

// Publisher publishes the pages of Websites as ConfigMaps.
type Publisher struct {
	client *kubernetes.Clientset
	rest   rest.Interface // of Websites
	scheme *runtime.Scheme
	dns    api.Records

	sites, pages cache.SharedIndexInformer
	queue        workqueue.TypedRateLimitingInterface[cache.ObjectName]
	metrics      *metrics
}

func newPublisher(config *rest.Config, dns api.Records, m *metrics) (*Publisher, error) {
	p := &Publisher{dns: dns, scheme: runtime.NewScheme(), metrics: m}
	if err := api.AddToScheme(p.scheme); err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config)
	gv := api.Kind.GroupVersion()
	own.GroupVersion, own.APIPath = &gv, "/apis"
	own.ContentType = runtime.ContentTypeJSON
	own.NegotiatedSerializer = serializer.NewCodecFactory(p.scheme).WithoutConversion()
	var err error
	if p.rest, err = rest.RESTClientFor(own); err != nil {
		return nil, err
	}
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}

	all := fields.Everything()
	p.sites = cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(p.rest, "websites", "", all), &api.Website{}, 0,
		cache.Indexers{})
	core := p.client.CoreV1().RESTClient()
	p.pages = cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(core, "configmaps", "", all), &corev1.ConfigMap{}, 0,
		cache.Indexers{ownerIndex: ownerOf})
	p.queue = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "websites"})
	_, ofSites := p.sites.AddEventHandler(handler(p.enqueue))
	_, ofPages := p.pages.AddEventHandler(handler(p.enqueueOwner))
	return p, errors.Join(ofSites, ofPages)
}

// handler calls enqueue with each object that is added, changed or deleted.
func handler(enqueue func(obj any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue,
		UpdateFunc: func(oldObj, newObj any) {
			enqueue(oldObj) // the former owner of a page
			enqueue(newObj)
		},
		DeleteFunc: enqueue,
	}
}

func (p *Publisher) enqueue(obj any) {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		utilruntime.HandleError(err)
		return
	}
	p.queue.Add(name)
}

func (p *Publisher) enqueueOwner(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	page, ok := obj.(*corev1.ConfigMap)
	if !ok {
		utilruntime.HandleError(fmt.Errorf("unexpected %T", obj))
		return
	}
	owner := metav1.GetControllerOfNoCopy(page)
	if owner == nil || schema.FromAPIVersionAndKind(
		owner.APIVersion, owner.Kind).GroupKind() != api.Kind.GroupKind() {
		return
	}
	p.queue.Add(cache.NewObjectName(page.Namespace, owner.Name))
}

func ownerOf(obj any) ([]string, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

// work reconciles keys until the queue shuts down.
func (p *Publisher) work(ctx context.Context) {
	for {
		name, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		p.next(ctx, name)
	}
}

func (p *Publisher) next(ctx context.Context, name cache.ObjectName) {
	defer p.queue.Done(name)
	again, err := p.reconcile(ctx, name)
	p.metrics.reconciled(err)
	switch {
	case err != nil:
		utilruntime.HandleErrorWithContext(ctx, err, "reconcile failed", "website", name)
		p.queue.AddRateLimited(name)
	case again > 0:
		p.queue.Forget(name)
		p.queue.AddAfter(name, again)
	default:
		p.queue.Forget(name)
	}
}

func (p *Publisher) websites(namespace string) *gentype.Client[*api.Website] {
	return gentype.NewClient("websites", p.rest, runtime.NewParameterCodec(p.scheme), namespace,
		func() *api.Website { return &api.Website{} })
}

func (p *Publisher) reconcile(
	ctx context.Context, name cache.ObjectName,
) (again time.Duration, err error) {
	obj, exists, err := p.sites.GetIndexer().GetByKey(name.String())
	if err != nil || !exists {
		return 0, err
	}
	site := obj.(*api.Website).Copy()
	if site.DeletionTimestamp != nil {
		return 0, p.finalize(ctx, site)
	}
	if !slices.Contains(site.Finalizers, api.Finalizer) {
		site.Finalizers = append(site.Finalizers, api.Finalizer)
		_, err := p.websites(site.Namespace).Update(ctx, site, metav1.UpdateOptions{})
		return 0, err
	}
	taken, failed := p.publish(ctx, site)
	reported := p.report(ctx, site, taken, failed)
	if err := errors.Join(failed, reported); err != nil || len(taken) == 0 {
		return 0, err
	}
	return time.Minute, nil
}

func (p *Publisher) publish(
	ctx context.Context, site *api.Website,
) (taken []string, err error) {
	if err := p.dns.Set(ctx, site); err != nil {
		return nil, fmt.Errorf("set DNS record: %w", err)
	}
	var failed []error
	wanted := map[string]bool{}
	for _, page := range slices.Sorted(maps.Keys(site.Spec.Pages)) {
		want := site.Page(page)
		wanted[want.Name] = true
		mine, err := p.publishPage(ctx, site, want)
		if err != nil {
			failed = append(failed, fmt.Errorf("write page: %w", err))
		} else if !mine {
			taken = append(taken, want.Name)
		}
	}
	owned, err := p.pages.GetIndexer().ByIndex(ownerIndex, string(site.UID))
	if err != nil {
		return taken, errors.Join(append(failed, err)...)
	}
	for _, obj := range owned {
		page := obj.(*corev1.ConfigMap)
		if wanted[page.Name] {
			continue
		}
		err := p.client.CoreV1().ConfigMaps(page.Namespace).Delete(ctx, page.Name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(page.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("delete page: %w", err))
		}
	}
	return taken, errors.Join(failed...)
}

func (p *Publisher) publishPage(
	ctx context.Context, site *api.Website, want *corev1.ConfigMap,
) (mine bool, err error) {
	pages := p.client.CoreV1().ConfigMaps(site.Namespace)
	obj, exists, err := p.pages.GetIndexer().GetByKey(want.Namespace + "/" + want.Name)
	if err != nil {
		return false, err
	}
	if !exists {
		_, err = pages.Create(ctx, want, metav1.CreateOptions{})
	} else {
		found := obj.(*corev1.ConfigMap)
		switch {
		case !mayOwn(site, found):
			return false, nil
		case metav1.IsControlledBy(found, site) && maps.Equal(found.Data, want.Data):
			return true, nil
		}
		changed := found.DeepCopy()
		changed.Data = want.Data
		site.Adopt(changed)
		_, err = pages.Update(ctx, changed, metav1.UpdateOptions{})
	}
	if err != nil {
		return false, err
	}
	return true, nil
}

func mayOwn(site *api.Website, page *corev1.ConfigMap) bool {
	if metav1.GetControllerOfNoCopy(page) != nil {
		return metav1.IsControlledBy(page, site)
	}
	return page.Labels["website"] == site.Name && page.DeletionTimestamp == nil
}

func (p *Publisher) finalize(ctx context.Context, site *api.Website) error {
	at := slices.Index(site.Finalizers, api.Finalizer)
	if at < 0 {
		return nil
	}
	if err := p.dns.Remove(ctx, site); err != nil {
		return fmt.Errorf("remove DNS record: %w", err)
	}
	site.Finalizers = slices.Delete(site.Finalizers, at, at+1)
	_, err := p.websites(site.Namespace).Update(ctx, site, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p *Publisher) report(
	ctx context.Context, site *api.Website, taken []string, failed error,
) error {
	ready := metav1.Condition{Type: api.Ready, Status: metav1.ConditionTrue, Reason: "Published",
		ObservedGeneration: site.Generation}
	switch {
	case failed != nil:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "Failed", failed.Error()
		was := meta.FindStatusCondition(site.Status.Conditions, api.Ready)
		if was != nil && was.Reason == "Failed" && was.ObservedGeneration == site.Generation {
			ready.Message = was.Message // the event of a new text would end the backoff
		}
	case len(taken) > 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, "NameTaken"
		ready.Message = "others have the ConfigMaps " + strings.Join(taken, ", ")
	}
	changed := meta.SetStatusCondition(&site.Status.Conditions, ready)
	if !changed && site.Status.ObservedGeneration == site.Generation {
		return nil
	}
	site.Status.ObservedGeneration = site.Generation
	_, err := p.websites(site.Namespace).UpdateStatus(ctx, site, metav1.UpdateOptions{})
	return err
}
