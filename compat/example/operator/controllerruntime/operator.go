// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime is the operator of the folder above, written with controller-runtime.
package controllerruntime

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
	taken, failed := p.publish(ctx, &site)
	reported := p.report(ctx, &site, taken, failed)
	if err := errors.Join(failed, reported); err != nil || len(taken) == 0 {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: time.Minute}, nil
}

func (p *publisher) publish(
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
	var owned corev1.ConfigMapList
	err = p.client.List(ctx, &owned, client.InNamespace(site.Namespace),
		client.MatchingFields{ownerIndex: string(site.UID)})
	if err != nil {
		return taken, errors.Join(append(failed, err)...)
	}
	for _, page := range owned.Items {
		if wanted[page.Name] {
			continue
		}
		err := p.client.Delete(ctx, &page, client.Preconditions{UID: &page.UID})
		if client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("delete page: %w", err))
		}
	}
	return taken, errors.Join(failed...)
}

func (p *publisher) publishPage(
	ctx context.Context, site *api.Website, want *corev1.ConfigMap,
) (mine bool, err error) {
	var found corev1.ConfigMap
	err = p.client.Get(ctx, client.ObjectKeyFromObject(want), &found)
	switch {
	case apierrors.IsNotFound(err):
		err = p.client.Create(ctx, want)
	case err != nil:
		return false, err
	case !mayOwn(site, &found):
		return false, nil
	case metav1.IsControlledBy(&found, site) && maps.Equal(found.Data, want.Data):
		return true, nil
	default:
		found.Data = want.Data
		site.Adopt(&found)
		err = p.client.Update(ctx, &found)
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

func (p *publisher) finalize(ctx context.Context, site *api.Website) error {
	if !controllerutil.RemoveFinalizer(site, api.Finalizer) {
		return nil
	}
	if err := p.dns.Remove(ctx, site); err != nil {
		return fmt.Errorf("remove DNS record: %w", err)
	}
	return client.IgnoreNotFound(p.client.Update(ctx, site))
}

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
	return p.client.Status().Update(ctx, site)
}
