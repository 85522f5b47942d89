// SPDX-License-Identifier: Apache-2.0

//go:build !js

package builtin

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// defaultPod sets the requests of containers with limits.
func defaultPod(pod *corev1.Pod) {
	spec := &pod.Spec
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				if _, ok := r.Requests[name]; !ok {
					r.Requests[name] = limit
				}
			}
		}
	}
}

// completePod sets the quality of service, and what the admission plugins of a real server set.
func completePod(pod, _ *corev1.Pod) {
	spec := &pod.Spec
	pod.Status.QOSClass = qualityOfService(spec)
	orNew(&spec.Priority, 0)
	orNew(&spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") &&
				(t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if !slices.ContainsFunc(spec.Tolerations, tolerated) {
			t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute}
			orNew(&t.TolerationSeconds, 300)
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}

// orNew sets a field that is nil.
func orNew[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// qualityOfService looks at cpu and memory: Guaranteed if each container has limits of both, equal
// to its requests.
func qualityOfService(spec *corev1.PodSpec) corev1.PodQOSClass {
	some, guaranteed := false, true
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			some = some || !request.IsZero() || !limit.IsZero()
			guaranteed = guaranteed && !limit.IsZero() && request.Cmp(limit) == 0
		}
	}
	switch {
	case !some:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// completeDaemonSet counts the changes of the template.
func completeDaemonSet(d, old *appsv1.DaemonSet) {
	generation := int64(1)
	if old != nil {
		was := old.Annotations[appsv1.DeprecatedTemplateGeneration]
		generation, _ = strconv.ParseInt(was, 10, 64) // 0 if it is absent
		if !reflect.DeepEqual(d.Spec.Template, old.Spec.Template) {
			generation++
		}
	}
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, appsv1.DeprecatedTemplateGeneration,
		strconv.FormatInt(generation, 10))
}

// defaultJob sets the numbers of pods.
func defaultJob(j *batchv1.Job) {
	spec := &j.Spec
	if spec.Completions == nil && spec.Parallelism == nil {
		orNew(&spec.Completions, 1)
	}
	orNew(&spec.Parallelism, 1)
}

// completeJob lets a new job select the pods with its own uid. Its labels are by default those of
// its template.
func completeJob(j, old *batchv1.Job) {
	spec := &j.Spec
	if old == nil && !*spec.ManualSelector {
		uid := string(j.UID)
		if spec.Template.Labels == nil {
			spec.Template.Labels = map[string]string{}
		}
		for name, value := range map[string]string{"controller-uid": uid, "job-name": j.Name,
			batchv1.ControllerUidLabel: uid, batchv1.JobNameLabel: j.Name} {
			spec.Template.Labels[name] = value
		}
		orNew(&spec.Selector, metav1.LabelSelector{})
		metav1.AddLabelToSelector(spec.Selector, batchv1.ControllerUidLabel, uid)
	}
	if len(j.Labels) == 0 {
		j.Labels = spec.Template.Labels
	}
}

// completeService returns a function that gives services addresses and ports on nodes. They count
// up, and are not used again. An update keeps those of the old object.
func completeService() func(s, old *corev1.Service) {
	var addresses, ports atomic.Uint32
	return func(s, old *corev1.Service) {
		spec := &s.Spec
		for i := range spec.Ports {
			port := &spec.Ports[i]
			if port.TargetPort == (intstr.IntOrString{}) {
				port.TargetPort = intstr.FromInt32(port.Port)
			}
		}
		if spec.Type == corev1.ServiceTypeExternalName {
			return
		}
		policy, families := corev1.IPFamilyPolicySingleStack, []corev1.IPFamily{corev1.IPv4Protocol}
		if spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0 {
			policy = corev1.IPFamilyPolicyRequireDualStack // its endpoints may be anything
			families = append(families, corev1.IPv6Protocol)
		}
		orNew(&spec.IPFamilyPolicy, policy)
		if len(spec.IPFamilies) == 0 {
			spec.IPFamilies = families
		}
		if old != nil {
			spec.ClusterIP = cmp.Or(spec.ClusterIP, old.Spec.ClusterIP)
		}
		if spec.ClusterIP == "" {
			n := addresses.Add(1)
			spec.ClusterIP = fmt.Sprintf("10.%d.%d.%d", n>>16&0xff, n>>8&0xff, n&0xff)
		}
		if len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		if spec.Type == corev1.ServiceTypeClusterIP {
			return
		}
		for i := range spec.Ports {
			port := &spec.Ports[i].NodePort
			if old != nil && i < len(old.Spec.Ports) {
				*port = cmp.Or(*port, old.Spec.Ports[i].NodePort)
			}
			if *port == 0 {
				*port = 30000 + int32(ports.Add(1)%2768)
			}
		}
	}
}

// completeSecret moves the strings to the data.
func completeSecret(s, _ *corev1.Secret) {
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

const claimFinalizer = "kubernetes.io/pvc-protection"

func completeClaim(c, old *corev1.PersistentVolumeClaim) {
	if old == nil && !slices.Contains(c.Finalizers, claimFinalizer) {
		c.Finalizers = append(c.Finalizers, claimFinalizer)
	}
}

func defaultNetworkPolicy(p *networkingv1.NetworkPolicy) {
	types := &p.Spec.PolicyTypes
	if len(*types) > 0 {
		return
	}
	*types = append(*types, networkingv1.PolicyTypeIngress)
	if len(p.Spec.Egress) > 0 {
		*types = append(*types, networkingv1.PolicyTypeEgress)
	}
}

// completeNode taints a new node until it is ready. Its encoding fills the status.
func completeNode(node, old *corev1.Node) {
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if old == nil && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.MatchTaint(&taint)
	}) {
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
}
