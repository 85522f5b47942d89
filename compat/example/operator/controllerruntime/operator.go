// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime is the operator of the folder above, written with controller-runtime.
package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"example.com/informerstack/compat/example/operator/api"
)

const ownerIndex = "owner"

type publisher struct {
	client client.Client
	dns    api.Records
}

// New returns the operator. options has the addresses of metrics and health, and the election.
func New(config *rest.Config, dns api.Records, options manager.Options) (manager.Manager, error) {
	options.Scheme = runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(options.Scheme),
		api.AddToScheme(options.Scheme)); err != nil {
		return nil, err
	}
	options.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
	m, err := manager.New(config, options)
	if err != nil {
		return nil, err
	}
	err = m.GetFieldIndexer().IndexField(context.Background(), &corev1.ConfigMap{}, ownerIndex,
		func(obj client.Object) []string {
			if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
				return []string{string(owner.UID)}
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(m).Named("websites").
		For(&api.Website{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(&publisher{m.GetClient(), dns})
	return m, errors.Join(err, m.AddHealthzCheck("ping", healthz.Ping),
		m.AddReadyzCheck("ping", healthz.Ping))
}

// Reconcile implements reconcile.Reconciler.
func (p *publisher) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var site api.Website
	if err := p.client.Get(ctx, request.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if site.DeletionTimestamp != nil {
		return ctrl.Result{}, p.finalize(ctx, &site)
	}
	if controllerutil.AddFinalizer(&site, api.Finalizer) {
		return ctrl.Result{}, p.client.Update(ctx, &site)
	}
	failed := p.publish(ctx, &site)
	var taken *takenError
	if reported := p.report(ctx, &site, failed); reported != nil || !errors.As(failed, &taken) {
		return ctrl.Result{}, errors.Join(failed, reported)
	}
	return ctrl.Result{RequeueAfter: time.Minute}, nil
}

func (p *publisher) publish(ctx context.Context, site *api.Website) error {
	if err := p.dns.Set(ctx, site.Spec.Host); err != nil {
		return fmt.Errorf("set DNS record: %w", err)
	}
	wanted := map[string]bool{}
	for page := range site.Spec.Pages {
		want := site.Page(page)
		wanted[want.Name] = true
		if err := p.publishPage(ctx, site, want); err != nil {
			return err
		}
	}
	var owned corev1.ConfigMapList
	err := p.client.List(ctx, &owned, client.InNamespace(site.Namespace),
		client.MatchingFields{ownerIndex: string(site.UID)})
	if err != nil {
		return err
	}
	for _, page := range owned.Items {
		if wanted[page.Name] {
			continue
		}
		err := p.client.Delete(ctx, &page, client.Preconditions{UID: &page.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete page: %w", err)
		}
	}
	return nil
}

type takenError struct{ name string }

func (e *takenError) Error() string { return "ConfigMap " + e.name + " belongs to another owner" }

func (p *publisher) publishPage(
	ctx context.Context, site *api.Website, want *corev1.ConfigMap,
) error {
	var found corev1.ConfigMap
	err := p.client.Get(ctx, client.ObjectKeyFromObject(want), &found)
	switch {
	case apierrors.IsNotFound(err):
		err = p.client.Create(ctx, want)
	case err != nil:
		return err
	case !mayOwn(site, &found):
		return &takenError{want.Name}
	case metav1.IsControlledBy(&found, site) && maps.Equal(found.Data, want.Data):
		return nil
	default:
		found.Data, found.OwnerReferences = want.Data, want.OwnerReferences
		err = p.client.Update(ctx, &found)
	}
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func mayOwn(site *api.Website, page *corev1.ConfigMap) bool {
	if metav1.GetControllerOfNoCopy(page) != nil {
		return metav1.IsControlledBy(page, site)
	}
	return page.Labels["website"] == site.Name
}

func (p *publisher) finalize(ctx context.Context, site *api.Website) error {
	if !controllerutil.RemoveFinalizer(site, api.Finalizer) {
		return nil
	}
	if err := p.dns.Remove(ctx, site.Spec.Host); err != nil {
		return fmt.Errorf("remove DNS record: %w", err)
	}
	return client.IgnoreNotFound(p.client.Update(ctx, site))
}

func (p *publisher) report(ctx context.Context, site *api.Website, failed error) error {
	ready := metav1.Condition{Type: api.Ready, Status: metav1.ConditionTrue, Reason: "Published",
		ObservedGeneration: site.Generation}
	if failed != nil {
		ready.Status, ready.Reason = metav1.ConditionFalse, "Failed"
		ready.Message = failed.Error()
		if _, taken := failed.(*takenError); taken {
			ready.Reason = "NameTaken"
		}
	}
	changed := meta.SetStatusCondition(&site.Status.Conditions, ready)
	if !changed && site.Status.ObservedGeneration == site.Generation {
		return nil
	}
	site.Status.ObservedGeneration = site.Generation
	return p.client.Status().Update(ctx, site)
}
