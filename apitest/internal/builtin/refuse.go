// SPDX-License-Identifier: Apache-2.0

//go:build !js

package builtin

import (
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// findings are the errors of an object in the order in which a real server reports them.
type findings struct{ errs field.ErrorList }

func (f *findings) add(errs ...*field.Error) { f.errs = append(f.errs, errs...) }

// invalid reports a value with each of the messages.
func (f *findings) invalid(at *field.Path, value any, messages ...string) {
	for _, message := range messages {
		f.add(field.Invalid(at, value, message))
	}
}

// required reports whether a value is there.
func (f *findings) required(at *field.Path, value string) bool {
	if value == "" {
		f.add(field.Required(at, ""))
	}
	return value != ""
}

// oneOf reports an unknown value.
func oneOf[T ~string](f *findings, at *field.Path, value T, known ...T) {
	if !slices.Contains(known, value) {
		f.add(field.NotSupported(at, value, known))
	}
}

// notNegative reports a number below 0.
func notNegative[T int32 | int64](f *findings, at *field.Path, n *T) {
	if n != nil {
		f.add(apivalidation.ValidateNonnegativeField(int64(*n), at)...)
	}
}

// unique reports a name that is in seen already.
func (f *findings) unique(at *field.Path, name string, seen map[string]bool) {
	if seen[name] {
		f.add(field.Duplicate(at, name))
	}
	seen[name] = true
}

func (f *findings) immutable(at *field.Path, value, old any) {
	f.add(apivalidation.ValidateImmutableField(value, old, at)...)
}

var specPath = field.NewPath("spec")

// selector checks that the selector selects the template's pods.
func (f *findings) selector(kind string, s *metav1.LabelSelector, pod *corev1.PodTemplateSpec) {
	at := specPath.Child("selector")
	if s == nil {
		f.add(field.Required(at, ""))
	} else {
		var options metavalidation.LabelSelectorValidationOptions
		f.add(metavalidation.ValidateLabelSelector(s, options, at)...)
		if kind != "" && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
			f.invalid(at, s, "empty selector is invalid for "+kind)
		}
	}
	selected, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		f.invalid(at, s, "invalid label selector")
		return
	}
	if !selected.Matches(labels.Set(pod.Labels)) {
		f.invalid(specPath.Child("template", "metadata", "labels"), pod.Labels,
			"`selector` does not match template `labels`")
	}
}

// template checks the pods of a kind, which are started again always.
func (f *findings) template(pod *corev1.PodTemplateSpec) {
	at := specPath.Child("template", "spec")
	f.add(metavalidation.ValidateLabels(pod.Labels, specPath.Child("template", "labels"))...)
	f.podSpec(at, &pod.Spec)
	oneOf(f, at.Child("restartPolicy"), pod.Spec.RestartPolicy, corev1.RestartPolicyAlways)
}

func checkDeployment(d, old *appsv1.Deployment) field.ErrorList {
	f, s := &findings{}, &d.Spec
	notNegative(f, specPath.Child("replicas"), s.Replicas)
	f.selector("deployment", s.Selector, &s.Template)
	f.template(&s.Template)
	at := specPath.Child("strategy")
	rolling := s.Strategy.RollingUpdate
	switch {
	case s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType:
		f.rollingUpdate(at.Child("rollingUpdate"), rolling.MaxUnavailable, rolling.MaxSurge)
	case s.Strategy.Type != appsv1.RecreateDeploymentStrategyType:
		f.add(field.NotSupported(at, struct {
			Type          string
			RollingUpdate any
		}{string(s.Strategy.Type), rolling}, []string{"Recreate", "RollingUpdate"}))
	case rolling != nil:
		f.add(field.Forbidden(at.Child("rollingUpdate"),
			"may not be specified when strategy `type` is 'Recreate'"))
	}
	notNegative(f, specPath.Child("minReadySeconds"), &s.MinReadySeconds)
	notNegative(f, specPath.Child("revisionHistoryLimit"), s.RevisionHistoryLimit)
	notNegative(f, specPath.Child("progressDeadlineSeconds"), s.ProgressDeadlineSeconds)
	if *s.ProgressDeadlineSeconds <= s.MinReadySeconds {
		f.invalid(specPath.Child("progressDeadlineSeconds"), *s.ProgressDeadlineSeconds,
			"must be greater than minReadySeconds")
	}
	if old != nil {
		f.immutable(specPath.Child("selector"), s.Selector, old.Spec.Selector)
	}
	return f.errs
}

func (f *findings) rollingUpdate(at *field.Path, unavailable, surge *intstr.IntOrString) {
	count := func(name string, v *intstr.IntOrString) (n int) {
		if v.Type == intstr.String {
			messages := validation.IsValidPercent(v.StrVal)
			f.invalid(at.Child(name), v, messages...)
			if n, _ = intstr.GetScaledValueFromIntOrPercent(v, 100, true); len(messages) > 0 {
				n = 1 // unknown
			}
			return n
		}
		f.add(apivalidation.ValidateNonnegativeField(int64(v.IntVal), at.Child(name))...)
		return int(v.IntVal)
	}
	gone := count("maxUnavailable", unavailable)
	if more := count("maxSurge", surge); gone == 0 && more == 0 {
		f.invalid(at.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0")
	}
	if unavailable.Type == intstr.String && gone > 100 {
		f.invalid(at.Child("maxUnavailable"), unavailable, "must not be greater than 100%")
	}
}

func checkReplicaSet(r, old *appsv1.ReplicaSet) field.ErrorList {
	f, s := &findings{}, &r.Spec
	notNegative(f, specPath.Child("replicas"), s.Replicas)
	notNegative(f, specPath.Child("minReadySeconds"), &s.MinReadySeconds)
	f.selector("deployment", s.Selector, &s.Template) // as a real server says
	f.template(&s.Template)
	if old != nil {
		f.immutable(specPath.Child("selector"), s.Selector, old.Spec.Selector)
	}
	return f.errs
}

func checkStatefulSet(set, old *appsv1.StatefulSet) field.ErrorList {
	f, s := &findings{}, &set.Spec
	if p := s.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement &&
		p != appsv1.ParallelPodManagement {
		f.invalid(specPath.Child("podManagementPolicy"), p, "must be 'OrderedReady' or 'Parallel'")
	}
	notNegative(f, specPath.Child("replicas"), s.Replicas)
	notNegative(f, specPath.Child("minReadySeconds"), &s.MinReadySeconds)
	f.selector("statefulset", s.Selector, &s.Template)
	f.template(&s.Template)
	if old != nil {
		was := &old.Spec
		f.immutable(specPath.Child("selector"), s.Selector, was.Selector)
		f.immutable(specPath.Child("volumeClaimTemplates"), s.VolumeClaimTemplates,
			was.VolumeClaimTemplates)
		f.immutable(specPath.Child("serviceName"), s.ServiceName, was.ServiceName)
		f.immutable(specPath.Child("podManagementPolicy"), s.PodManagementPolicy,
			was.PodManagementPolicy)
	}
	return f.errs
}

func checkDaemonSet(d, old *appsv1.DaemonSet) field.ErrorList {
	f, s := &findings{}, &d.Spec
	f.selector("daemonset", s.Selector, &s.Template)
	f.template(&s.Template)
	notNegative(f, specPath.Child("minReadySeconds"), &s.MinReadySeconds)
	notNegative(f, specPath.Child("revisionHistoryLimit"), s.RevisionHistoryLimit)
	if old != nil {
		f.immutable(specPath.Child("selector"), s.Selector, old.Spec.Selector)
	}
	return f.errs
}

func checkJob(j, old *batchv1.Job) field.ErrorList {
	f, s := &findings{}, &j.Spec
	notNegative(f, specPath.Child("parallelism"), s.Parallelism)
	notNegative(f, specPath.Child("completions"), s.Completions)
	notNegative(f, specPath.Child("activeDeadlineSeconds"), s.ActiveDeadlineSeconds)
	notNegative(f, specPath.Child("backoffLimit"), s.BackoffLimit)
	notNegative(f, specPath.Child("ttlSecondsAfterFinished"), s.TTLSecondsAfterFinished)
	oneOf(f, specPath.Child("completionMode"), *s.CompletionMode, batchv1.NonIndexedCompletion,
		batchv1.IndexedCompletion)
	if *s.CompletionMode == batchv1.IndexedCompletion && s.Completions == nil {
		f.add(field.Required(specPath.Child("completions"), "when completion mode is Indexed"))
	}
	own := s.Selector != nil && len(s.Selector.MatchExpressions) == 0 &&
		len(s.Selector.MatchLabels) == 1 &&
		s.Selector.MatchLabels[batchv1.ControllerUidLabel] == string(j.UID)
	if old == nil && !*s.ManualSelector && !own {
		f.invalid(specPath.Child("selector"), s.Selector, "`selector` not auto-generated")
	}
	f.selector("", s.Selector, &s.Template)
	f.jobPod(specPath.Child("template", "spec"), &s.Template.Spec)
	if old != nil {
		was := &old.Spec
		if *s.CompletionMode != batchv1.IndexedCompletion {
			f.immutable(specPath.Child("completions"), s.Completions, was.Completions)
		}
		f.immutable(specPath.Child("selector"), s.Selector, was.Selector)
		if !*was.Suspend || old.Status.StartTime != nil {
			f.immutable(specPath.Child("template"), s.Template, was.Template)
		}
		f.immutable(specPath.Child("completionMode"), s.CompletionMode, was.CompletionMode)
	}
	return f.errs
}

// jobPod checks the pods of a job, which end.
func (f *findings) jobPod(at *field.Path, pod *corev1.PodSpec) {
	f.podSpec(at, pod)
	switch pod.RestartPolicy {
	case corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
	case corev1.RestartPolicyAlways:
		f.add(field.Required(at.Child("restartPolicy"), `valid values: "OnFailure", "Never"`))
	}
}

func checkCronJob(c, _ *batchv1.CronJob) field.ErrorList {
	f, s := &findings{}, &c.Spec
	oneOf(f, specPath.Child("concurrencyPolicy"), s.ConcurrencyPolicy, batchv1.AllowConcurrent,
		batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	f.jobPod(specPath.Child("jobTemplate", "spec", "template", "spec"),
		&s.JobTemplate.Spec.Template.Spec)
	notNegative(f, specPath.Child("successfulJobsHistoryLimit"), s.SuccessfulJobsHistoryLimit)
	notNegative(f, specPath.Child("failedJobsHistoryLimit"), s.FailedJobsHistoryLimit)
	f.required(specPath.Child("schedule"), s.Schedule)
	return f.errs
}

func checkService(service, old *corev1.Service) field.ErrorList {
	f, s := &findings{}, &service.Spec
	if old != nil && old.Spec.Type != corev1.ServiceTypeExternalName &&
		s.Type != corev1.ServiceTypeExternalName && old.Spec.ClusterIP != s.ClusterIP {
		f.invalid(specPath.Child("clusterIPs").Index(0), s.ClusterIPs, "may not change once set")
	}
	headless := s.ClusterIP == corev1.ClusterIPNone
	if len(s.Ports) == 0 && !headless && s.Type != corev1.ServiceTypeExternalName {
		f.add(field.Required(specPath.Child("ports"), ""))
	}
	if s.Type == corev1.ServiceTypeExternalName {
		f.required(specPath.Child("externalName"), s.ExternalName)
	}
	f.servicePorts(s.Ports)
	f.add(metavalidation.ValidateLabels(s.Selector, specPath.Child("selector"))...)
	oneOf(f, specPath.Child("sessionAffinity"), s.SessionAffinity, corev1.ServiceAffinityClientIP,
		corev1.ServiceAffinityNone)
	oneOf(f, specPath.Child("type"), s.Type, corev1.ServiceTypeClusterIP,
		corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)
	if !headless && s.ClusterIP != "" {
		f.add(validation.IsValidIP(specPath.Child("clusterIPs").Index(0), s.ClusterIP)...)
	}
	return f.errs
}

func (f *findings) servicePorts(ports []corev1.ServicePort) {
	names := map[string]bool{}
	for i, p := range ports {
		at := specPath.Child("ports").Index(i)
		if len(ports) > 1 || p.Name != "" {
			if f.required(at.Child("name"), p.Name) {
				f.invalid(at.Child("name"), p.Name, validation.IsDNS1123Label(p.Name)...)
				f.unique(at.Child("name"), p.Name, names)
			}
		}
		f.port(at.Child("port"), p.Port)
		f.protocol(at.Child("protocol"), p.Protocol)
		if p.TargetPort.Type == intstr.Int {
			f.port(at.Child("targetPort"), p.TargetPort.IntVal)
		} else {
			f.invalid(at.Child("targetPort"), p.TargetPort.StrVal,
				validation.IsValidPortName(p.TargetPort.StrVal)...)
		}
	}
	for i, p := range ports {
		same := func(q corev1.ServicePort) bool {
			return q.Port == p.Port && q.Protocol == p.Protocol
		}
		if slices.ContainsFunc(ports[:i], same) {
			f.add(field.Duplicate(specPath.Child("ports").Index(i), struct {
				Name, Protocol             string
				AppProtocol                any
				Port, TargetPort, NodePort int32
			}{"", string(p.Protocol), nil, p.Port, 0, 0}))
		}
	}
}

const isImmutable = "field is immutable when `immutable` is set"

func checkConfigMap(c, old *corev1.ConfigMap) field.ErrorList {
	f, size := &findings{}, 0
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		f.key(key)
		size += len(c.Data[key])
		if _, ok := c.BinaryData[key]; ok {
			f.invalid(field.NewPath("data").Key(key), key,
				"duplicate of key present in binaryData")
		}
	}
	for _, value := range c.BinaryData {
		size += len(value)
	}
	f.size(field.NewPath(""), size)
	if old != nil && old.Immutable != nil && *old.Immutable {
		f.stays("immutable", c.Immutable, old.Immutable)
		f.stays("data", c.Data, old.Data)
		f.stays("binaryData", c.BinaryData, old.BinaryData)
	}
	return f.errs
}

func (f *findings) key(key string) {
	f.invalid(field.NewPath("data").Key(key), key, validation.IsConfigMapKey(key)...)
}

// size reports data that is too long.
func (f *findings) size(at *field.Path, n int) {
	if n > corev1.MaxSecretSize {
		f.add(field.TooLong(at, "", corev1.MaxSecretSize))
	}
}

// stays reports the change of a field of an immutable object.
func (f *findings) stays(name string, value, old any) {
	if !reflect.DeepEqual(value, old) {
		f.add(field.Forbidden(field.NewPath(name), isImmutable))
	}
}

// secretKeys are the keys that a type of secrets requires.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
}

func checkSecret(s, old *corev1.Secret) field.ErrorList {
	f, size := &findings{}, 0
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		f.key(key)
		size += len(s.Data[key])
	}
	f.size(field.NewPath("data"), size)
	for _, key := range secretKeys[s.Type] {
		if _, ok := s.Data[key]; !ok {
			f.add(field.Required(field.NewPath("data").Key(key), ""))
		}
	}
	if old != nil {
		f.immutable(field.NewPath("type"), s.Type, old.Type)
		if old.Immutable != nil && *old.Immutable {
			f.stays("immutable", s.Immutable, old.Immutable)
			f.stays("data", s.Data, old.Data)
		}
	}
	return f.errs
}

func checkClaim(c, old *corev1.PersistentVolumeClaim) field.ErrorList {
	f, s := &findings{}, &c.Spec
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany,
		corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	if len(s.AccessModes) == 0 {
		f.add(field.Required(specPath.Child("accessModes"), "at least 1 access mode is required"))
	}
	for _, mode := range s.AccessModes {
		oneOf(f, specPath.Child("accessModes"), mode, modes...)
	}
	at := specPath.Child("resources").Key(string(corev1.ResourceStorage))
	storage, ok := s.Resources.Requests[corev1.ResourceStorage]
	switch {
	case !ok:
		f.add(field.Required(at, ""))
	case storage.Sign() <= 0:
		f.invalid(at, storage.String(), "must be greater than zero")
	}
	if old == nil {
		return f.errs
	}
	now := s.DeepCopy()
	now.VolumeName = old.Spec.VolumeName
	if old.Status.Phase == corev1.ClaimBound {
		now.Resources.Requests = old.Spec.Resources.Requests
		now.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	}
	if old.Spec.VolumeName != "" && s.VolumeName != old.Spec.VolumeName ||
		!reflect.DeepEqual(now, &old.Spec) {
		f.add(field.Forbidden(specPath, "spec is immutable after creation except "+
			"resources.requests and volumeAttributesClassName for bound claims"))
	}
	return f.errs
}

// checkRoleBinding checks a RoleBinding or a ClusterRoleBinding, which have the same fields.
func checkRoleBinding(b, old *rbacv1.RoleBinding) field.ErrorList {
	f := &findings{}
	if ref := b.RoleRef; old != nil && ref != old.RoleRef {
		shown := map[string]string{"APIGroup": ref.APIGroup, "Kind": ref.Kind, "Name": ref.Name}
		f.invalid(field.NewPath("roleRef"), shown, apivalidation.FieldImmutableErrorMsg)
	}
	return f.errs
}

func checkStorageClass(c, old *storagev1.StorageClass) field.ErrorList {
	f := &findings{}
	if old == nil {
		return nil
	}
	changed := func(name string, is bool) {
		if is {
			f.invalid(field.NewPath(name), nil, apivalidation.FieldImmutableErrorMsg)
		}
	}
	changed("provisioner", c.Provisioner != old.Provisioner)
	changed("parameters", !maps.Equal(c.Parameters, old.Parameters))
	changed("reclaimPolicy", !reflect.DeepEqual(c.ReclaimPolicy, old.ReclaimPolicy))
	changed("volumeBindingMode", !reflect.DeepEqual(c.VolumeBindingMode, old.VolumeBindingMode))
	return f.errs
}
