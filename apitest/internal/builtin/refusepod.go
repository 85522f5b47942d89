// SPDX-License-Identifier: Apache-2.0

//go:build !js

package builtin

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkPod(pod, old *corev1.Pod) field.ErrorList {
	f := &findings{}
	f.podSpec(specPath, &pod.Spec)
	if old != nil {
		f.podUpdate(&pod.Spec, &old.Spec)
	}
	return f.errs
}

// podUpdate reports the change of a field that stays.
func (f *findings) podUpdate(pod, old *corev1.PodSpec) {
	if len(pod.Containers) != len(old.Containers) ||
		len(pod.InitContainers) != len(old.InitContainers) {
		f.add(field.Forbidden(specPath.Child("containers"),
			"pod updates may not add or remove containers"))
		return
	}
	now := pod.DeepCopy()
	for i := range now.Containers {
		now.Containers[i].Image = old.Containers[i].Image
	}
	for i := range now.InitContainers {
		now.InitContainers[i].Image = old.InitContainers[i].Image
	}
	now.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	if len(now.Tolerations) >= len(old.Tolerations) {
		now.Tolerations = slices.Concat(old.Tolerations, now.Tolerations[len(old.Tolerations):])
		if reflect.DeepEqual(now.Tolerations, pod.Tolerations) {
			now.Tolerations = old.Tolerations
		}
	}
	if now.SchedulingGates = old.SchedulingGates; len(pod.SchedulingGates) > 0 {
		now.NodeSelector, now.Affinity = old.NodeSelector, old.Affinity
	}
	if !reflect.DeepEqual(now, old) {
		f.add(field.Forbidden(specPath, "pod updates may not change fields other than "+
			"`spec.containers[*].image`,`spec.initContainers[*].image`,"+
			"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "+
			"tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "+
			"was previously negative)"))
	}
}

func (f *findings) podSpec(at *field.Path, pod *corev1.PodSpec) {
	volumes, names := map[string]bool{}, map[string]bool{}
	for i, v := range pod.Volumes {
		name := at.Child("volumes").Index(i).Child("name")
		if f.required(name, v.Name) {
			f.invalid(name, v.Name, validation.IsDNS1123Label(v.Name)...)
			f.unique(name, v.Name, volumes)
		}
	}
	if len(pod.Containers) == 0 {
		f.add(field.Required(at.Child("containers"), ""))
	}
	// a name that is used twice is reported at the init container
	for _, c := range pod.Containers {
		names[c.Name] = len(pod.InitContainers) > 0
	}
	for i := range pod.InitContainers {
		f.container(at.Child("initContainers").Index(i), &pod.InitContainers[i], names, volumes)
	}
	clear(names)
	for i := range pod.Containers {
		f.container(at.Child("containers").Index(i), &pod.Containers[i], names, volumes)
	}
	oneOf(f, at.Child("restartPolicy"), pod.RestartPolicy, corev1.RestartPolicyAlways,
		corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	oneOf(f, at.Child("dnsPolicy"), pod.DNSPolicy, corev1.DNSClusterFirstWithHostNet,
		corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	f.add(metavalidation.ValidateLabels(pod.NodeSelector, at.Child("nodeSelector"))...)
	if name := pod.ServiceAccountName; name != "" {
		f.invalid(at.Child("serviceAccountName"), name, validation.IsDNS1123Subdomain(name)...)
	}
	if n := pod.ActiveDeadlineSeconds; n != nil {
		if *n < 1 || *n > 1<<31-1 {
			f.invalid(at.Child("activeDeadlineSeconds"), *n,
				validation.InclusiveRangeError(1, 1<<31-1))
		}
	}
}

func (f *findings) container(at *field.Path, c *corev1.Container, names, volumes map[string]bool) {
	if f.required(at.Child("name"), c.Name) {
		f.invalid(at.Child("name"), c.Name, validation.IsDNS1123Label(c.Name)...)
		f.unique(at.Child("name"), c.Name, names)
	}
	if f.required(at.Child("image"), c.Image) && strings.TrimSpace(c.Image) != c.Image {
		f.invalid(at.Child("image"), c.Image, "must not have leading or trailing whitespace")
	}
	oneOf(f, at.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	ports := map[string]bool{}
	for i, p := range c.Ports {
		at := at.Child("ports").Index(i)
		if p.Name != "" {
			f.invalid(at.Child("name"), p.Name, validation.IsValidPortName(p.Name)...)
			f.unique(at.Child("name"), p.Name, ports)
		}
		if p.ContainerPort == 0 {
			f.add(field.Required(at.Child("containerPort"), ""))
		} else {
			f.port(at.Child("containerPort"), p.ContainerPort)
		}
		f.protocol(at.Child("protocol"), p.Protocol)
	}
	for i, env := range c.Env {
		if at := at.Child("env").Index(i).Child("name"); f.required(at, env.Name) {
			f.invalid(at, env.Name, validation.IsRelaxedEnvVarName(env.Name)...)
		}
	}
	for i, mount := range c.VolumeMounts {
		at := at.Child("volumeMounts").Index(i)
		if f.required(at.Child("name"), mount.Name) && !volumes[mount.Name] {
			f.add(field.NotFound(at.Child("name"), mount.Name))
		}
		f.required(at.Child("mountPath"), mount.MountPath)
	}
	oneOf(f, at.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways,
		corev1.PullIfNotPresent, corev1.PullNever)
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Requests)) {
		request := c.Resources.Requests[name]
		if limit, ok := c.Resources.Limits[name]; ok && request.Cmp(limit) > 0 {
			f.invalid(at.Child("resources", "requests"), request.String(),
				"must be less than or equal to "+string(name)+" limit of "+limit.String())
		}
	}
}

func (f *findings) port(at *field.Path, n int32) {
	f.invalid(at, n, validation.IsValidPortNum(int(n))...)
}

func (f *findings) protocol(at *field.Path, p corev1.Protocol) {
	oneOf(f, at, p, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}
