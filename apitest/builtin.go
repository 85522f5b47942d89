// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"strings"

	"example.com/informerstack/apitest/internal/table"
)

// builtins returns the kinds that every server serves from the start: those of a kube-apiserver
// that controllers use most. Each call returns new values.
func builtins() []*Resource {
	var all []*Resource
	for _, line := range strings.Split(strings.TrimSpace(builtinTable+userTable), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, parseBuiltin(strings.Fields(line)))
		}
	}
	for _, r := range all {
		kind := r.Plural + "." + r.Group
		r.table, r.Fields = table.Builtin(kind), builtinFields[kind]
		r.plainFieldErrors = r.Fields == nil
	}
	return all
}

// builtinTable has one line per kind: group/version, kind, plural, short names, traits. The traits:
//
//	n namespaced        s status subresource     g counts generations    u updated unconditionally
//	c created by PUT    d DELETE returns it      a in category "all"
//	o orphans dependents by default      e has no dependents        r has replicas (scale)
//	L name is a label   S name is a DNS-1035 service name                P name is a path segment
//	R is a kind of reviews      A has the subresource approval     f finalizers need no domain
const builtinTable = `
	v1                           Pod                      pods                      po       nsguda
	v1                           ConfigMap                configmaps                cm       nu
	v1                           Secret                   secrets                   -        nu
	v1                           Service                  services                  svc      nsucdaS
	v1                           Endpoints                endpoints                 ep       nuc
	v1                           Namespace                namespaces                ns       sudL
	v1                           Node                     nodes                     no       su
	v1                           Event                    events                    ev       nucef
	v1                           ServiceAccount           serviceaccounts           sa       nud
	v1                           PersistentVolumeClaim    persistentvolumeclaims    pvc      nsud
	v1                           PersistentVolume         persistentvolumes         pv       sud
	v1                           ReplicationController    replicationcontrollers    rc       nsguaor
	v1                           ResourceQuota            resourcequotas            quota    nsud
	v1                           LimitRange               limitranges               limits   nuc
	v1                           PodTemplate              podtemplates              -        ngud
	apps/v1                      Deployment               deployments               deploy   nsguar
	apps/v1                      ReplicaSet               replicasets               rs       nsguar
	apps/v1                      StatefulSet              statefulsets              sts      nsguar
	apps/v1                      DaemonSet                daemonsets                ds       nsgua
	apps/v1                      ControllerRevision       controllerrevisions       -        nu
	batch/v1                     CronJob                  cronjobs                  cj       nsgua
	batch/v1                     Job                      jobs                      -        nsguao
	autoscaling/v2               HorizontalPodAutoscaler  horizontalpodautoscalers  hpa      nsgua
	coordination.k8s.io/v1       Lease                    leases                    -        ncf
	discovery.k8s.io/v1          EndpointSlice            endpointslices            -        ngu
	events.k8s.io/v1             Event                    events                    ev       nuce
	networking.k8s.io/v1         Ingress                  ingresses                 ing      nsgu
	networking.k8s.io/v1         IngressClass             ingressclasses            -        gu
	networking.k8s.io/v1         NetworkPolicy            networkpolicies           netpol   ngu
	policy/v1                    PodDisruptionBudget      poddisruptionbudgets      pdb      nsgf
	rbac.authorization.k8s.io/v1 Role                     roles                     -        nucP
	rbac.authorization.k8s.io/v1 RoleBinding              rolebindings              -        nucP
	rbac.authorization.k8s.io/v1 ClusterRole              clusterroles              -        ucP
	rbac.authorization.k8s.io/v1 ClusterRoleBinding       clusterrolebindings       -        ucP
	admissionregistration.k8s.io/v1 MutatingWebhookConfiguration   mutatingwebhookconfigurations   - guf
	admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations - guf
	scheduling.k8s.io/v1         PriorityClass            priorityclasses           pc       gu
	storage.k8s.io/v1            StorageClass             storageclasses            sc       ud
	apiextensions.k8s.io/v1      CustomResourceDefinition customresourcedefinitions crd,crds sgf
`

// builtinFields are the field selectors of the kinds that support more than name and namespace.
var builtinFields = map[string][]string{
	"pods.": {
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
		"spec.hostNetwork",
		"status.phase", "status.podIP", "status.nominatedNodeName",
	},
	"nodes.":      {"spec.unschedulable"},
	"namespaces.": {"status.phase"},
	"secrets.":    {"type"},
	"services.":   {"spec.clusterIP", "spec.type"},
	"events.": {
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
		"involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
		"reason", "reportingComponent", "source", "type",
	},
	"certificatesigningrequests.certificates.k8s.io": {"spec.signerName"},
	"replicationcontrollers.":                        {"status.replicas"},
	"jobs.batch":                                     {"status.successful"},
	"events.events.k8s.io": {
		"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
		"regarding.apiVersion",
		"regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type",
	},
}

func parseBuiltin(words []string) *Resource {
	group, version, hasGroup := strings.Cut(words[0], "/")
	if !hasGroup {
		group, version = "", words[0]
	}
	has := func(trait string) bool { return strings.Contains(words[4], trait) }
	r := &Resource{
		Group: group, Version: version, Kind: words[1], Plural: words[2],
		Namespaced: has("n"), Status: has("s"),
		traits: traits{
			builtin:             true,
			noGeneration:        !has("g"),
			unconditionalUpdate: has("u"),
			createOnUpdate:      has("c"),
			returnsDeleted:      has("d"),
			types:               builtinTypes,
			orphans:             has("o"),
			childless:           has("e"),
			review:              has("R"),
			approval:            has("A"),
			anyFinalizer:        has("f"),
		},
	}
	if has("r") {
		r.scale = builtinScale
	}
	if r.isDefinitions() { // client-go's scheme does not have it
		r.types = customTypes(r.GroupVersionKind().GroupKind(),
			map[string]string{r.Version: definitionFields})
	}
	if words[3] != "-" {
		r.ShortNames = strings.Split(words[3], ",")
	}
	if has("a") {
		r.Categories = []string{"all"}
	}
	switch {
	case has("L"):
		r.name = labelName
	case has("S"):
		r.name = dns1035Name
	case has("P"):
		r.name = pathSegmentName
	}
	return r
}
