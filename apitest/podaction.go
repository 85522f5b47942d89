// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// bind gives a pod its node, as a scheduler asks for.
func (c *call) bind(body *object, dryRun bool) error {
	var to corev1.ObjectReference
	if err := body.get("target", &to); err != nil {
		return err
	}
	if body.meta.Name != c.name {
		return apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	path := field.NewPath("target")
	var errs field.ErrorList
	if to.Kind != "" && to.Kind != "Node" {
		errs = append(errs, field.NotSupported(path.Child("kind"), to.Kind,
			[]string{"Node", "<empty>"}))
	}
	if to.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if len(errs) > 0 {
		return errors.New(errs.ToAggregate().Error()) // not an invalid object, but 500
	}
	assign := func(old *version) (*object, error) {
		conflict := func(format string, args ...any) error {
			resource := schema.GroupResource{Resource: "pods/binding"}
			return apierrors.NewConflict(resource, c.name, fmt.Errorf(format, args...))
		}
		obj := old.object.copy()
		node := obj.fieldAt("spec.nodeName")
		if obj.meta.DeletionTimestamp != nil {
			return nil, conflict("pod %s is being deleted, cannot be assigned to a host", c.name)
		}
		if node != "" {
			return nil, conflict("pod %s is already assigned to node %q", c.name, node)
		}
		obj.edit("spec", func(spec map[string]any) { spec["nodeName"] = to.Name })
		for key, value := range body.meta.Annotations {
			metav1.SetMetaDataAnnotation(&obj.meta, key, value)
		}
		obj.setCondition("PodScheduled", "True", "", "")
		obj.meta.ResourceVersion = body.meta.ResourceVersion
		return obj, nil
	}
	w := write{dryRun: dryRun, manager: c.manager(""), by: c}
	_, _, err := c.server.update(c.target, body.meta.UID, w, assign)
	return err
}

// evict deletes a pod if its PodDisruptionBudget allows it. No controller keeps the status of the
// budget: the test writes it, and evictions use up its disruptionsAllowed.
func (c *call) evict(body *object, dryRun bool) error {
	var o metav1.DeleteOptions
	if err := body.get("deleteOptions", &o); err != nil {
		return err
	}
	if body.meta.Name != c.name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	dryRun = dryRun || isDryRun(o.DryRun)
	t := c.target
	t.subresource = ""
	s := c.server
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.tickLocked(time.Now())
	if _, _, err := s.deleteLocked(t, &o, true); err != nil {
		return err
	}
	if err := s.disruptLocked(s.log.collectionLocked(t.resource).get(t.key()), dryRun); err != nil {
		return err
	}
	_, _, err := s.deleteLocked(t, &o, dryRun)
	s.settleLocked(t)
	return err
}

// disruptLocked takes one disruption of a pod from its budget, or reports why it may not.
func (s *Server) disruptLocked(v *version, dryRun bool) error {
	var pod corev1.Pod
	_ = json.Unmarshal(v.json, &pod) // a value of another type is no reason to keep it
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed:
		return nil
	}
	if pod.DeletionTimestamp != nil {
		return nil
	}
	budgets := s.log.collectionLocked(s.log.resources.find("policy", "v1", "poddisruptionbudgets"))
	var found *version
	var budget policyv1.PodDisruptionBudget
	count := 0
	budgets.stateLocked(v.namespace+"/", "", s.log.rv, func(b *version) bool {
		var next policyv1.PodDisruptionBudget
		if json.Unmarshal(b.json, &next) != nil {
			return true
		}
		selector, err := metav1.LabelSelectorAsSelector(next.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			count++
			found, budget = b, next
		}
		return true
	})
	if count > 1 {
		//lint:ignore ST1005 the text of a real server
		return errors.New("This pod has more than one PodDisruptionBudget, which the eviction " +
			"subresource does not support.")
	}
	if found == nil {
		return nil
	}
	status, policy := &budget.Status, budget.Spec.UnhealthyPodEvictionPolicy
	if !isReady(&pod) &&
		(policy != nil && *policy == policyv1.AlwaysAllow ||
			status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0) {
		return nil
	}
	if status.ObservedGeneration < budget.Generation {
		err := overBudget(fmt.Sprintf(
			"The disruption budget %s is still being processed by the server.", budget.Name))
		err.ErrStatus.Details.RetryAfterSeconds = 10
		return err
	}
	if status.DisruptionsAllowed <= 0 {
		return overBudget(fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d "+
			"currently", budget.Name, status.DesiredHealthy, status.CurrentHealthy))
	}
	status.DisruptionsAllowed--
	condition := metav1.Condition{Type: policyv1.DisruptionAllowedCondition,
		ObservedGeneration: status.ObservedGeneration, Status: metav1.ConditionTrue,
		Reason: policyv1.SufficientPodsReason}
	if status.DisruptionsAllowed == 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, policyv1.InsufficientPodsReason
	}
	apimeta.SetStatusCondition(&status.Conditions, condition)
	if status.DisruptedPods == nil {
		status.DisruptedPods = map[string]metav1.Time{}
	}
	status.DisruptedPods[pod.Name] = metav1.Now().Rfc3339Copy()
	obj := found.object.copy()
	obj.put("status", status)
	t := target{resource: budgets.resource, subresource: "status", namespace: found.namespace,
		name: found.name}
	_, err := s.replaceLocked(budgets, t, found, obj, write{dryRun: dryRun})
	return err
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func overBudget(why string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests,
		Reason:  metav1.StatusReasonTooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: policyv1.DisruptionBudgetCause, Message: why}}},
	}}
}
