// SPDX-License-Identifier: Apache-2.0

//go:build !js

package table

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podCells summarizes a pod. Init containers that run beside the others (sidecars) count as
// containers.
func podCells(p *corev1.Pod) []any {
	status, ready, total := podStatus(p), 0, len(p.Spec.Containers)
	restarts, last := int32(0), metav1.Time{}
	count := func(s *corev1.ContainerStatus) {
		restarts += s.RestartCount
		if end := s.LastTerminationState.Terminated; end != nil && last.Before(&end.FinishedAt) {
			last = end.FinishedAt
		}
	}
	initializing := initializingAt(p) >= 0
	for i := range p.Status.InitContainerStatuses {
		s := &p.Status.InitContainerStatuses[i]
		if isSidecar(p, s.Name) && s.Started != nil && *s.Started && s.Ready {
			ready++
		}
		if isSidecar(p, s.Name) || initializing {
			count(s)
		}
	}
	for _, c := range p.Spec.InitContainers {
		if isSidecar(p, c.Name) {
			total++
		}
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i]
		if !initializing && s.Ready && s.State.Running != nil {
			ready++
		}
		if !initializing {
			count(s)
		}
	}
	text := fmt.Sprint(restarts)
	if restarts > 0 && !last.IsZero() {
		text += fmt.Sprintf(" (%s ago)", age(last))
	}
	ip := p.Status.PodIP
	if len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	gates, passed := "<none>", 0
	for _, gate := range p.Spec.ReadinessGates {
		if hasPodCondition(p, gate.ConditionType) {
			passed++
		}
		gates = fmt.Sprintf("%d/%d", passed, len(p.Spec.ReadinessGates))
	}
	return cells(p.Name, fmt.Sprintf("%d/%d", ready, total), status, text, age(p.CreationTimestamp),
		orNone(ip), orNone(p.Spec.NodeName), orNone(p.Status.NominatedNodeName), gates)
}

func hasPodCondition(p *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func isSidecar(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil &&
			*c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// initializingAt returns the index of the first init container that is not over, or -1. A sidecar
// is over when it has started.
func initializingAt(p *corev1.Pod) int {
	if hasPodCondition(p, corev1.PodInitialized) {
		return -1
	}
	return slices.IndexFunc(p.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		ended := s.State.Terminated
		started := isSidecar(p, s.Name) && s.Started != nil && *s.Started
		return (ended == nil || ended.ExitCode != 0) && !started
	})
}

// podStatus is the phase of a pod, or a reason that says more.
func podStatus(p *corev1.Pod) string {
	status := cmp.Or(p.Status.Reason, string(p.Status.Phase))
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			status = c.Reason
		}
	}
	if at := initializingAt(p); at >= 0 {
		status = "Init:" + cmp.Or(stateReason(&p.Status.InitContainerStatuses[at].State),
			fmt.Sprintf("%d/%d", at, len(p.Spec.InitContainers)))
	} else {
		status = containersStatus(p, status)
	}
	if p.DeletionTimestamp == nil || p.Status.Phase == corev1.PodFailed ||
		p.Status.Phase == corev1.PodSucceeded {
		return status
	}
	if p.Status.Reason == "NodeLost" {
		return "Unknown"
	}
	return "Terminating"
}

// containersStatus is the reason of the first container that does not run.
func containersStatus(p *corev1.Pod, status string) string {
	running := false
	for _, s := range slices.Backward(p.Status.ContainerStatuses) {
		running = running || (s.Ready && s.State.Running != nil)
		status = cmp.Or(stateReason(&s.State), status)
	}
	if status != "Completed" || !running {
		return status
	}
	if hasPodCondition(p, corev1.PodReady) {
		return "Running"
	}
	return "NotReady"
}

// stateReason is the reason why a container waits or has ended, or "".
func stateReason(s *corev1.ContainerState) string {
	switch ended := s.Terminated; {
	case s.Waiting != nil && s.Waiting.Reason != "PodInitializing":
		return s.Waiting.Reason
	case ended == nil:
		return ""
	case ended.Signal != 0 && ended.Reason == "":
		return fmt.Sprintf("Signal:%d", ended.Signal)
	default:
		return cmp.Or(ended.Reason, fmt.Sprintf("ExitCode:%d", ended.ExitCode))
	}
}
