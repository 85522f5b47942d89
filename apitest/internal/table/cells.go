// SPDX-License-Identifier: Apache-2.0

//go:build !js

package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
)

// layouts are the tables of built-in kinds that kubectl shows with more than a name and an age.
// Other kinds have these two.
var layouts = map[string]Layout{
	"configmaps.": typed("Name,Data,Age", func(c *corev1.ConfigMap) []any {
		return cells(c.Name, len(c.Data)+len(c.BinaryData), age(c.CreationTimestamp))
	}),
	"secrets.": typed("Name,Type,Data,Age", func(s *corev1.Secret) []any {
		return cells(s.Name, s.Type, len(s.Data), age(s.CreationTimestamp))
	}),
	"namespaces.": typed("Name,Status,Age", func(n *corev1.Namespace) []any {
		return cells(n.Name, n.Status.Phase, age(n.CreationTimestamp))
	}),
	"pods.": typed("Name,Ready,Status,Restarts,Age,IP+,Node+,Nominated Node+,Readiness Gates+",
		podCells),
	"services.": typed("Name,Type,Cluster-IP,External-IP,Port(s),Age,Selector+", serviceCells),
	"nodes.": typed("Name,Status,Roles,Age,Version,Internal-IP+,External-IP+,OS-Image+,"+
		"Kernel-Version+,Container-Runtime+", nodeCells),
	"events.": typed("Last Seen,Type,Reason,Object,Subobject+,Source+,Message,First Seen+,Count+,"+
		"Name+", eventCells),
	"deployments.apps": typed("Name,Ready,Up-to-date,Available,Age,Containers+,Images+,Selector+",
		func(d *appsv1.Deployment) []any {
			row := cells(d.Name, of(d.Status.ReadyReplicas, d.Spec.Replicas),
				d.Status.UpdatedReplicas, d.Status.AvailableReplicas, age(d.CreationTimestamp))
			return append(row, template(&d.Spec.Template, d.Spec.Selector)...)
		}),
	"replicasets.apps": typed("Name,Desired#,Current#,Ready#,Age,Containers+,Images+,Selector+",
		func(r *appsv1.ReplicaSet) []any {
			row := cells(r.Name, orZero(r.Spec.Replicas), r.Status.Replicas, r.Status.ReadyReplicas,
				age(r.CreationTimestamp))
			return append(row, template(&r.Spec.Template, r.Spec.Selector)...)
		}),
	"statefulsets.apps": typed("Name,Ready,Age,Containers+,Images+",
		func(s *appsv1.StatefulSet) []any {
			row := cells(s.Name, of(s.Status.ReadyReplicas, s.Spec.Replicas),
				age(s.CreationTimestamp))
			return append(row, template(&s.Spec.Template, nil)[:2]...)
		}),
	"daemonsets.apps": typed("Name,Desired#,Current#,Ready#,Up-to-date#,Available#,Node Selector,"+
		"Age,Containers+,Images+,Selector+",
		func(d *appsv1.DaemonSet) []any {
			s := &d.Status
			row := cells(d.Name, s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady,
				s.UpdatedNumberScheduled, s.NumberAvailable,
				labels.FormatLabels(d.Spec.Template.Spec.NodeSelector), age(d.CreationTimestamp))
			return append(row, template(&d.Spec.Template, d.Spec.Selector)...)
		}),
	"jobs.batch": typed("Name,Status,Completions,Duration,Age,Containers+,Images+,Selector+",
		jobCells),
	"certificatesigningrequests.certificates.k8s.io": typed(
		"Name,Age,SignerName,Requestor,RequestedDuration,Condition", requestCells),
	"leases.coordination.k8s.io": typed("Name,Holder,Age", func(l *coordinationv1.Lease) []any {
		holder := ""
		if l.Spec.HolderIdentity != nil {
			holder = *l.Spec.HolderIdentity
		}
		return cells(l.Name, holder, age(l.CreationTimestamp))
	}),
}

// cells returns numbers as they are, and other values as text, as a decoded Table has them.
func cells(values ...any) []any {
	for i, value := range values {
		switch value := value.(type) {
		case int, int32, string:
		default:
			values[i] = fmt.Sprint(value)
		}
	}
	return values
}

func orZero(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func of(ready int32, wanted *int32) string { return fmt.Sprintf("%d/%d", ready, orZero(wanted)) }

func orNone(text string) string { return cmp.Or(text, "<none>") }

// template returns the names and images of the containers of a template, and its selector.
func template(t *corev1.PodTemplateSpec, selector *metav1.LabelSelector) []any {
	var names, images []string
	for _, c := range t.Spec.Containers {
		names, images = append(names, c.Name), append(images, c.Image)
	}
	text := "<none>"
	if selector != nil {
		text = metav1.FormatLabelSelector(selector)
	}
	return cells(strings.Join(names, ","), strings.Join(images, ","), text)
}

func serviceCells(s *corev1.Service) []any {
	external := strings.Join(s.Spec.ExternalIPs, ",")
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		external = s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var at []string
		for _, in := range s.Status.LoadBalancer.Ingress {
			at = append(at, cmp.Or(in.IP, in.Hostname))
		}
		external = cmp.Or(strings.Join(append(at, s.Spec.ExternalIPs...), ","), "<pending>")
	}
	var ports []string
	for _, p := range s.Spec.Ports {
		port := fmt.Sprint(p.Port)
		if p.NodePort > 0 {
			port += fmt.Sprintf(":%d", p.NodePort)
		}
		ports = append(ports, port+"/"+string(p.Protocol))
	}
	return cells(s.Name, s.Spec.Type, orNone(s.Spec.ClusterIP), orNone(external),
		orNone(strings.Join(ports, ",")), age(s.CreationTimestamp),
		labels.FormatLabels(s.Spec.Selector))
}

func nodeCells(n *corev1.Node) []any {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = map[bool]string{true: "Ready", false: "NotReady"}[c.Status == "True"]
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	roles := map[string]bool{}
	for label, value := range n.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles[role] = true
		} else if label == "kubernetes.io/role" && value != "" {
			roles[value] = true
		}
	}
	address := func(kind corev1.NodeAddressType) string {
		for _, a := range n.Status.Addresses {
			if a.Type == kind {
				return a.Address
			}
		}
		return "<none>"
	}
	info := &n.Status.NodeInfo
	known := func(text string) string { return cmp.Or(text, "<unknown>") }
	return cells(n.Name, status, orNone(strings.Join(slices.Sorted(maps.Keys(roles)), ",")),
		age(n.CreationTimestamp), info.KubeletVersion, address(corev1.NodeInternalIP),
		address(corev1.NodeExternalIP), known(info.OSImage), known(info.KernelVersion),
		known(info.ContainerRuntimeVersion))
}

func eventCells(e *corev1.Event) []any {
	first, last, count := e.FirstTimestamp, e.LastTimestamp, e.Count
	if first.IsZero() {
		first = metav1.Time(e.EventTime)
	}
	if e.Series != nil {
		last, count = metav1.Time(e.Series.LastObservedTime), e.Series.Count
	} else if last.IsZero() {
		last = first
	}
	source := []string{cmp.Or(e.Source.Component, e.ReportingController),
		cmp.Or(e.Source.Host, e.ReportingInstance)}
	source = slices.DeleteFunc(source, func(part string) bool { return part == "" })
	object := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		object += "/" + e.InvolvedObject.Name
	}
	return cells(age(last), e.Type, e.Reason, object, e.InvolvedObject.FieldPath,
		strings.Join(source, ", "), strings.TrimSpace(e.Message), age(first), max(count, 1), e.Name)
}

func jobCells(j *batchv1.Job) []any {
	status := batchv1.JobConditionType("Running")
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet,
		batchv1.JobFailureTarget, batchv1.JobSuspended, batchv1.JobFailed, batchv1.JobComplete} {
		if slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == kind && c.Status == corev1.ConditionTrue
		}) {
			status = kind
		}
	}
	if j.DeletionTimestamp != nil && status != batchv1.JobFailed && status != batchv1.JobComplete {
		status = "Terminating"
	}
	wanted := "1"
	switch parallel := orZero(j.Spec.Parallelism); {
	case j.Spec.Completions != nil:
		wanted = fmt.Sprint(*j.Spec.Completions)
	case parallel > 1:
		wanted = fmt.Sprintf("1 of %d", parallel)
	}
	took := ""
	if start := j.Status.StartTime; start != nil {
		end := time.Now()
		if j.Status.CompletionTime != nil {
			end = j.Status.CompletionTime.Time
		}
		took = duration.HumanDuration(end.Sub(start.Time))
	}
	row := cells(j.Name, status, fmt.Sprintf("%d/%s", j.Status.Succeeded, wanted), took,
		age(j.CreationTimestamp))
	return append(row, template(&j.Spec.Template, j.Spec.Selector)...)
}

func requestCells(csr *certificatesv1.CertificateSigningRequest) []any {
	state, lasts := "Pending", "<none>"
	if s := csr.Spec.ExpirationSeconds; s != nil {
		lasts = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	for _, c := range csr.Status.Conditions { // approved, denied or neither; then perhaps failed
		switch c.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied:
			state = string(c.Type) + strings.TrimPrefix(state, "Pending")
		case certificatesv1.CertificateFailed:
			state += ",Failed"
		}
	}
	if len(csr.Status.Certificate) > 0 {
		state += ",Issued"
	}
	return cells(csr.Name, age(csr.CreationTimestamp), orNone(csr.Spec.SignerName),
		csr.Spec.Username, lasts, state)
}
