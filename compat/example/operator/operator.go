// SPDX-License-Identifier: Apache-2.0

package main

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
	"k8s.io/client-go/rest"

	"example.com/informerstack/client"
	"example.com/informerstack/compat/example/operator/api"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/operator"
	"example.com/informerstack/store"
)

// publisher publishes the pages of Websites as ConfigMaps.
type publisher struct {
	dns        api.Records
	siteClient *client.Client[*api.Website]
	pageClient *client.Client[*corev1.ConfigMap]

	sites *informer.Informer[*api.Website]
	pages *informer.Informer[*corev1.ConfigMap]
	ctrl  *controller.Controller[store.ObjectName]

	siteWrites, pageWrites controller.Writes[store.ObjectName]
}

type notedPages = controller.Noted[store.ObjectName, *corev1.ConfigMap]

// newPublisher makes the clients, the informers and the controller, and connects them.
func newPublisher(
	config *rest.Config, dns api.Records, o *operator.Operator,
) (p *publisher, err error) {
	p = &publisher{dns: dns}
	p.siteClient, err = client.New[*api.Website](config, api.Resource, client.Options{})
	if err != nil {
		return nil, err
	}
	p.pageClient, err = client.New[*corev1.ConfigMap](config,
		corev1.SchemeGroupVersion.WithResource("configmaps"), client.Options{})
	if err != nil {
		return nil, err
	}

	p.sites, err = operator.NewInformer[*api.Website](
		o, p.siteClient.REST(), "websites", informer.Options{})
	if err != nil {
		return nil, err
	}
	p.pages, err = operator.NewInformer[*corev1.ConfigMap](
		o, p.pageClient.REST(), "configmaps", informer.Options{
			Indexers: store.Indexers{store.OwnerIndex: store.OwnerIndexFunc},
		})
	if err != nil {
		return nil, err
	}

	p.ctrl, err = operator.NewController(o, "websites",
		controller.Patient(time.Second, p.reconcile, // the event of a write comes earlier
			p.siteWrites.SeenBy(p.sites.GetStore()), p.pageWrites.SeenBy(p.pages.GetStore())),
		controller.Options[store.ObjectName]{
			Workers: 4,
			WaitFor: []controller.Synced{p.sites.HasSyncedChecker(), p.pages.HasSyncedChecker()},
		})
	if err != nil {
		return nil, err
	}
	_, ofSites := p.sites.AddEventHandler(p.ctrl.Handler(store.DeletionHandlingObjectToName))
	_, ofPages := p.pages.AddEventHandler(
		p.ctrl.MapHandler(store.OwnerNames(api.Kind.GroupKind())))
	return p, errors.Join(ofSites, ofPages)
}

// run publishes until ctx is done.
func (p *publisher) run(ctx context.Context) error {
	go p.sites.Run(ctx)
	go p.pages.Run(ctx)
	return p.ctrl.Run(ctx)
}

// reconcile brings the website called name closer to its spec.
func (p *publisher) reconcile(
	ctx context.Context, name store.ObjectName,
) (controller.Result, error) {
	cached, err := p.sites.Lister().ByNamespace(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil // the finalizer has done its work
	} else if err != nil {
		return controller.Result{}, err
	}
	site := cached.Copy() // the cached object belongs to all readers
	if site.DeletionTimestamp != nil {
		return controller.Result{}, p.finalize(ctx, site)
	}
	if added, err := p.addFinalizer(ctx, site); added || err != nil {
		return controller.Result{}, err // the event of the write follows
	}
	taken, failed := p.publish(ctx, site)
	if errors.Is(failed, controller.ErrStale) {
		return controller.Result{}, failed // no failure of the website
	}
	reported := p.report(ctx, site, taken, failed)
	if err := errors.Join(failed, reported); err != nil || len(taken) == 0 {
		return controller.Result{}, err
	}
	// The end of a foreign object is no event of this website.
	return controller.Result{RequeueAfter: time.Minute}, nil
}

// publish makes the DNS and the ConfigMaps equal to the spec. taken are the names of pages that
// belong to other owners.
func (p *publisher) publish(
	ctx context.Context, site *api.Website,
) (taken []string, err error) {
	if err := p.dns.Set(ctx, site); err != nil {
		return nil, fmt.Errorf("set DNS record: %w", err)
	}
	pages := controller.Note(
		&p.pageWrites, store.MetaObjectToName(site), p.pageClient.Namespace(site.Namespace))
	var failed []error
	wanted := map[string]bool{}
	for _, page := range slices.Sorted(maps.Keys(site.Spec.Pages)) {
		want := site.Page(page)
		wanted[want.Name] = true
		mine, err := p.publishPage(ctx, pages, site, want)
		if err != nil {
			failed = append(failed, fmt.Errorf("write page: %w", err))
		} else if !mine {
			taken = append(taken, want.Name)
		}
	}
	owned, err := p.pages.Indexer().ByTypedIndex(store.OwnerIndex, string(site.UID))
	if err != nil {
		return taken, errors.Join(append(failed, err)...)
	}
	for _, page := range owned {
		if wanted[page.Name] {
			continue
		}
		err := pages.Delete(ctx, page, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("delete page: %w", err))
		}
	}
	return taken, errors.Join(failed...)
}

// publishPage creates the page, adopts it, corrects it, or leaves it alone because it is not the
// website's.
func (p *publisher) publishPage(
	ctx context.Context, pages notedPages, site *api.Website, want *corev1.ConfigMap,
) (mine bool, err error) {
	found, err := p.pages.Lister().ByNamespace(site.Namespace).Get(want.Name)
	switch {
	case apierrors.IsNotFound(err):
		_, err = pages.Create(ctx, want, metav1.CreateOptions{})
	case err != nil:
		return false, err
	case !mayOwn(site, found):
		return false, nil
	case metav1.IsControlledBy(found, site) && maps.Equal(found.Data, want.Data):
		return true, nil
	default:
		changed := found.DeepCopy()
		changed.Data = want.Data
		site.Adopt(changed)
		_, err = pages.Update(ctx, changed, metav1.UpdateOptions{})
	}
	return err == nil, err
}

// mayOwn reports whether the page is the website's, or is free, has its label, and stays.
func mayOwn(site *api.Website, page *corev1.ConfigMap) bool {
	if metav1.GetControllerOfNoCopy(page) != nil {
		return metav1.IsControlledBy(page, site)
	}
	return page.Labels["website"] == site.Name && page.DeletionTimestamp == nil
}

// websites returns a client that notes what it writes for site.
func (p *publisher) websites(
	site *api.Website,
) controller.Noted[store.ObjectName, *api.Website] {
	return controller.Note(
		&p.siteWrites, store.MetaObjectToName(site), p.siteClient.Namespace(site.Namespace))
}

// addFinalizer makes the server keep the website until finalize has cleaned up.
func (p *publisher) addFinalizer(ctx context.Context, site *api.Website) (added bool, err error) {
	if slices.Contains(site.Finalizers, api.Finalizer) {
		return false, nil
	}
	site.Finalizers = append(site.Finalizers, api.Finalizer)
	_, err = p.websites(site).Update(ctx, site, metav1.UpdateOptions{})
	return true, err
}

// finalize cleans up where no owner reference reaches, and lets the server delete the website. The
// garbage collector deletes its ConfigMaps.
func (p *publisher) finalize(ctx context.Context, site *api.Website) error {
	at := slices.Index(site.Finalizers, api.Finalizer)
	if at < 0 {
		return nil // the finalizers of others remain
	}
	if err := p.dns.Remove(ctx, site); err != nil {
		return fmt.Errorf("remove DNS record: %w", err)
	}
	site.Finalizers = slices.Delete(site.Finalizers, at, at+1)
	_, err := p.websites(site).Update(ctx, site, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// report writes the status if it has changed. The text of a failure stays until another generation:
// it may have a port or a time that differs in each attempt.
func (p *publisher) report(
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
	_, err := p.websites(site).UpdateStatus(ctx, site, metav1.UpdateOptions{})
	return err
}
