// SPDX-License-Identifier: Apache-2.0

//go:build !js

package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An action is a POST that does not store its body: a review, or a subresource of an object.
type action struct {
	resource, subresource string // "pods.", "eviction"; "tokenreviews.authentication.k8s.io", ""
	body                  *Resource
	// run changes the body to the answer, or returns another answer
	run func(c *call, body *object, dryRun bool) (*metav1.Status, error)
}

// reviewTable continues builtinTable. The trait r marks the kinds of reviews.
const reviewTable = `
	authentication.k8s.io/v1     TokenReview              tokenreviews              -        r
	authentication.k8s.io/v1     SelfSubjectReview        selfsubjectreviews        -        r
	authorization.k8s.io/v1      LocalSubjectAccessReview localsubjectaccessreviews -        nr
	authorization.k8s.io/v1      SelfSubjectAccessReview  selfsubjectaccessreviews  -        r
	authorization.k8s.io/v1      SelfSubjectRulesReview   selfsubjectrulesreviews   -        r
	authorization.k8s.io/v1      SubjectAccessReview      subjectaccessreviews      -        r
`

var actions = []action{
	{"pods.", "binding", &Resource{Version: "v1", Kind: "Binding", Namespaced: true,
		traits: traits{builtin: true}}, (*call).bind},
	{"pods.", "eviction", &Resource{Group: "policy", Version: "v1", Kind: "Eviction",
		Namespaced: true, traits: traits{builtin: true}}, (*call).evict},
	{"serviceaccounts.", "token", &Resource{Group: "authentication.k8s.io", Version: "v1",
		Kind: "TokenRequest", Namespaced: true, traits: traits{builtin: true}},
		(*call).requestToken},
	{"tokenreviews.authentication.k8s.io", "", nil, (*call).reviewToken},
	{"selfsubjectreviews.authentication.k8s.io", "", nil, (*call).reviewSelf},
	{"localsubjectaccessreviews.authorization.k8s.io", "", nil, (*call).reviewAccess},
	{"selfsubjectaccessreviews.authorization.k8s.io", "", nil, (*call).reviewAccess},
	{"selfsubjectrulesreviews.authorization.k8s.io", "", nil, (*call).reviewRules},
	{"subjectaccessreviews.authorization.k8s.io", "", nil, (*call).reviewAccess},
}

// actions returns the actions below the objects of a kind, or those of a kind of reviews.
func (r *Resource) actions() []*action {
	var found []*action
	for i, a := range actions {
		if r.builtin && a.resource == r.Plural+"."+r.Group {
			found = append(found, &actions[i])
		}
	}
	return found
}

func (r *Resource) action(subresource string) *action {
	for _, a := range r.actions() {
		if a.subresource == subresource {
			return a
		}
	}
	return nil
}

// act answers a POST with the result of an action.
func (c *call) act(a *action) error {
	data, err := c.body()
	if err != nil {
		return err
	}
	var o metav1.CreateOptions
	if err := options(c, &o, validation.ValidateCreateOptions); err != nil {
		return err
	}
	in := *c
	if a.body != nil {
		in.resource = a.body
	}
	body, err := in.decode(data, o.FieldValidation)
	if err != nil {
		return err
	}
	body.gvk = in.resource.GroupVersionKind()
	if err := matchNamespace(in.resource, c.namespace, &body.meta); err != nil {
		return err
	}
	answer, err := a.run(c, body, isDryRun(o.DryRun))
	if err != nil {
		return err
	}
	if answer != nil {
		writeJSON(c.w, int(answer.Code), answer)
		return nil
	}
	v, err := dryVersion(body, 0)
	if err == nil {
		in.writeObject(http.StatusCreated, v)
	}
	return err
}

func created() *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess, Code: http.StatusCreated}
}

// get decodes a field of an object. A field that is absent leaves into as it is.
func (o *object) get(name string, into any) error {
	if o.fields[name] == nil {
		return nil
	}
	if err := json.Unmarshal(o.fields[name], into); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("field %s: %v", name, err))
	}
	return nil
}

func (o *object) put(name string, value any) {
	raw, err := json.Marshal(value)
	if err == nil {
		raw, err = canonical(raw)
	}
	if err != nil {
		panic(err) // types of the API can be encoded
	}
	o.setField(name, raw)
}

// bind gives a pod its node, as a scheduler asks for.
func (c *call) bind(body *object, dryRun bool) (*metav1.Status, error) {
	var to corev1.ObjectReference
	if err := body.get("target", &to); err != nil {
		return nil, err
	}
	if body.meta.Name != c.name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
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
		return nil, errors.New(errs.ToAggregate().Error())
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
		obj.edit("status", func(status map[string]any) {
			conditions, _ := status["conditions"].([]any)
			status["conditions"] = append(conditions, map[string]any{"type": "PodScheduled",
				"status": "True", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
		})
		obj.meta.ResourceVersion = body.meta.ResourceVersion
		return obj, nil
	}
	_, _, err := c.server.update(c.target, body.meta.UID, c.write(dryOption(dryRun), ""), assign)
	return created(), err
}

func dryOption(dryRun bool) []string {
	if dryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// evict deletes a pod if its PodDisruptionBudget allows it. No controller keeps the status of the
// budget: the test writes it, and evictions use up its disruptionsAllowed.
func (c *call) evict(body *object, dryRun bool) (*metav1.Status, error) {
	var o metav1.DeleteOptions
	if err := body.get("deleteOptions", &o); err != nil {
		return nil, err
	}
	if body.meta.Name != c.name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	dryRun = dryRun || isDryRun(o.DryRun)
	t := c.target
	t.subresource = ""
	s := c.server
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.tickLocked(time.Now())
	if _, _, err := s.deleteLocked(t, &o, true); err != nil {
		return nil, err
	}
	if err := s.disruptLocked(s.log.collectionLocked(t.resource).get(t.key()), dryRun); err != nil {
		return nil, err
	}
	_, _, err := s.deleteLocked(t, &o, dryRun)
	s.settleLocked(t)
	return created(), err
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
		return errors.New("This pod has more than one PodDisruptionBudget, which the eviction " +
			"subresource does not support.")
	}
	if found == nil {
		return nil
	}
	status, policy := &budget.Status, budget.Spec.UnhealthyPodEvictionPolicy
	if !hasPodCondition(&pod, corev1.PodReady) &&
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

func overBudget(why string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests,
		Reason:  metav1.StatusReasonTooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: policyv1.DisruptionBudgetCause, Message: why}}},
	}}
}
