// SPDX-License-Identifier: Apache-2.0

//go:build !js

package builtin

import (
	"encoding/json"
	"strings"
)

// defaultTable has the fields that a kind gets when they are absent. A line that ends with : starts
// a kind. The fields above the last one of a path:
//
//	a.b       a is created if it is absent
//	a?.b      only if a is there
//	a[].b     in each element of a
//	a=v.b     if the field a beside b is v
//
// POD stands for podDefaults, in the field before it.
const defaultTable = `
pods.:
	spec POD
	spec.enableServiceLinks                              true
	status.phase                                         "Pending"
podtemplates.:
	template.spec POD
deployments.apps:
	spec.replicas                                        1
	spec.revisionHistoryLimit                            10
	spec.progressDeadlineSeconds                         600
	spec.strategy.type                                   "RollingUpdate"
	spec.strategy.type=RollingUpdate.rollingUpdate.maxSurge         "25%"
	spec.strategy.type=RollingUpdate.rollingUpdate.maxUnavailable   "25%"
	spec.template.spec POD
	status                                               {}
replicasets.apps:
	spec.replicas                                        1
	spec.template.spec POD
	status.replicas                                      0
statefulsets.apps:
	spec.replicas                                        1
	spec.revisionHistoryLimit                            10
	spec.podManagementPolicy                             "OrderedReady"
	spec.updateStrategy.type                             "RollingUpdate"
	spec.updateStrategy.type=RollingUpdate.rollingUpdate.partition       0
	spec.updateStrategy.type=RollingUpdate.rollingUpdate.maxUnavailable  1
	spec.persistentVolumeClaimRetentionPolicy.whenDeleted  "Retain"
	spec.persistentVolumeClaimRetentionPolicy.whenScaled   "Retain"
	spec.volumeClaimTemplates[].apiVersion               "v1"
	spec.volumeClaimTemplates[].kind                     "PersistentVolumeClaim"
	spec.volumeClaimTemplates[].spec.volumeMode          "Filesystem"
	spec.volumeClaimTemplates[].status.phase             "Pending"
	spec.template.spec POD
	status.replicas                                      0
	status.availableReplicas                             0
daemonsets.apps:
	spec.revisionHistoryLimit                            10
	spec.updateStrategy.type                             "RollingUpdate"
	spec.updateStrategy.type=RollingUpdate.rollingUpdate.maxSurge        0
	spec.updateStrategy.type=RollingUpdate.rollingUpdate.maxUnavailable  1
	spec.template.spec POD
	status.currentNumberScheduled                        0
	status.numberMisscheduled                            0
	status.desiredNumberScheduled                        0
	status.numberReady                                   0
jobs.batch:
	spec.backoffLimit                                    6
	spec.completionMode                                  "NonIndexed"
	spec.suspend                                         false
	spec.manualSelector                                  false
	spec.podReplacementPolicy                            "TerminatingOrFailed"
	spec.template.spec POD
	status                                               {}
cronjobs.batch:
	spec.concurrencyPolicy                               "Allow"
	spec.suspend                                         false
	spec.successfulJobsHistoryLimit                      3
	spec.failedJobsHistoryLimit                          1
	spec.jobTemplate.spec.template.spec POD
	status                                               {}
services.:
	spec.type                                            "ClusterIP"
	spec.sessionAffinity                                 "None"
	spec.sessionAffinity=ClientIP.sessionAffinityConfig.clientIP.timeoutSeconds  10800
	spec.ports[].protocol                                "TCP"
	spec.type=ClusterIP.internalTrafficPolicy            "Cluster"
	spec.type=NodePort.internalTrafficPolicy             "Cluster"
	spec.type=LoadBalancer.internalTrafficPolicy         "Cluster"
	spec.type=NodePort.externalTrafficPolicy             "Cluster"
	spec.type=LoadBalancer.externalTrafficPolicy         "Cluster"
	spec.type=LoadBalancer.allocateLoadBalancerNodePorts true
	status.loadBalancer                                  {}
secrets.:
	type                                                 "Opaque"
endpoints.:
	subsets[].ports[].protocol                           "TCP"
endpointslices.discovery.k8s.io:
	ports[].name                                         ""
	ports[].protocol                                     "TCP"
persistentvolumeclaims.:
	spec.volumeMode                                      "Filesystem"
	status.phase                                         "Pending"
persistentvolumes.:
	spec.volumeMode                                      "Filesystem"
	spec.persistentVolumeReclaimPolicy                   "Retain"
	status.phase                                         "Pending"
horizontalpodautoscalers.autoscaling:
	spec.minReplicas                                     1
	spec.metrics                                         [{"resource":{"name":"cpu","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"}]
	status.desiredReplicas                               0
	status.currentMetrics                                null
networkpolicies.networking.k8s.io:
	spec.ingress[].ports[].protocol                      "TCP"
	spec.egress[].ports[].protocol                       "TCP"
roles.rbac.authorization.k8s.io:
	rules                                                null
clusterroles.rbac.authorization.k8s.io:
	rules                                                null
rolebindings.rbac.authorization.k8s.io:
	roleRef.apiGroup                                     "rbac.authorization.k8s.io"
	subjects[].kind=User.apiGroup                        "rbac.authorization.k8s.io"
	subjects[].kind=Group.apiGroup                       "rbac.authorization.k8s.io"
clusterrolebindings.rbac.authorization.k8s.io:
	roleRef.apiGroup                                     "rbac.authorization.k8s.io"
	subjects[].kind=User.apiGroup                        "rbac.authorization.k8s.io"
	subjects[].kind=Group.apiGroup                       "rbac.authorization.k8s.io"
storageclasses.storage.k8s.io:
	reclaimPolicy                                        "Delete"
	volumeBindingMode                                    "Immediate"
`

// podDefaults are the fields of a pod's spec. EACH stands for containers[] and initContainers[],
// PROBE for the three probes.
const podDefaults = `
	restartPolicy                                        "Always"
	dnsPolicy                                            "ClusterFirst"
	schedulerName                                        "default-scheduler"
	terminationGracePeriodSeconds                        30
	securityContext                                      {}
	EACH.terminationMessagePath                          "/dev/termination-log"
	EACH.terminationMessagePolicy                        "File"
	EACH.ports[].protocol                                "TCP"
	EACH.env[].valueFrom?.fieldRef?.apiVersion           "v1"
	EACH.PROBE.timeoutSeconds                            1
	EACH.PROBE.periodSeconds                             10
	EACH.PROBE.successThreshold                          1
	EACH.PROBE.failureThreshold                          3
	EACH.PROBE.httpGet?.path                             "/"
	EACH.PROBE.httpGet?.scheme                           "HTTP"
	EACH.PROBE.grpc?.service                             ""
	EACH.lifecycle?.postStart?.httpGet?.path             "/"
	EACH.lifecycle?.postStart?.httpGet?.scheme           "HTTP"
	EACH.lifecycle?.preStop?.httpGet?.path               "/"
	EACH.lifecycle?.preStop?.httpGet?.scheme             "HTTP"
	volumes[].secret?.defaultMode                        420
	volumes[].configMap?.defaultMode                     420
	volumes[].hostPath?.type                             ""
	volumes[].downwardAPI?.defaultMode                   420
	volumes[].downwardAPI?.items[].fieldRef?.apiVersion  "v1"
	volumes[].projected?.defaultMode                     420
	volumes[].projected?.sources[].serviceAccountToken?.expirationSeconds             3600
	volumes[].projected?.sources[].downwardAPI?.items[].fieldRef?.apiVersion          "v1"
	volumes[].ephemeral?.volumeClaimTemplate?.spec.volumeMode                         "Filesystem"
`

// defaultField is a row of a table: a path and the JSON of a value.
type defaultField struct{ path, value string }

// readDefaults returns the rows of each kind, and the path of the pod's spec in it.
func readDefaults() (rows map[string][]defaultField, podSpecs map[string]string) {
	rows, podSpecs = map[string][]defaultField{}, map[string]string{}
	kind := ""
	for _, line := range strings.Split(strings.TrimSpace(defaultTable), "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 1:
			kind = strings.TrimSuffix(words[0], ":")
		case words[1] == "POD":
			podSpecs[kind] = words[0]
			rows[kind] = append(rows[kind], readPodDefaults(words[0])...)
		default:
			rows[kind] = append(rows[kind], defaultField{words[0], words[1]})
		}
	}
	return rows, podSpecs
}

func readPodDefaults(at string) []defaultField {
	var rows []defaultField
	for _, line := range strings.Split(strings.TrimSpace(podDefaults), "\n") {
		words := strings.Fields(line)
		for _, containers := range []string{"containers[]", "initContainers[]"} {
			for _, probe := range []string{"livenessProbe?", "readinessProbe?", "startupProbe?"} {
				path := strings.NewReplacer("EACH", containers, "PROBE", probe).Replace(words[0])
				rows = append(rows, defaultField{at + "." + path, words[1]})
			}
		}
	}
	return rows // some more than once: the first one sets the field
}

// fill sets the field of the row in obj if it is absent.
func (d defaultField) fill(obj map[string]any) {
	name, rest, more := strings.Cut(d.path, ".")
	if !more {
		var value any
		if err := json.Unmarshal([]byte(d.value), &value); err != nil {
			panic(err) // the table is wrong
		}
		setDefault(obj, name, value)
		return
	}
	inner := defaultField{rest, d.value}
	if key, want, ok := strings.Cut(name, "="); ok {
		if obj[key] == want {
			inner.fill(obj)
		}
		return
	}
	if key, ok := strings.CutSuffix(name, "[]"); ok {
		elements, _ := obj[key].([]any)
		for _, element := range elements {
			if element, ok := element.(map[string]any); ok {
				inner.fill(element)
			}
		}
		return
	}
	key, optional := strings.CutSuffix(name, "?")
	if obj[key] == nil && !optional {
		obj[key] = map[string]any{}
	}
	if field, ok := obj[key].(map[string]any); ok {
		inner.fill(field)
	}
}

// fillPodSpec sets what depends on other fields of a pod's spec.
func fillPodSpec(obj map[string]any, path string) {
	spec := obj
	for _, name := range strings.Split(path, ".") {
		spec, _ = spec[name].(map[string]any)
	}
	each := func(name string, f func(element map[string]any)) {
		elements, _ := spec[name].([]any)
		for _, element := range elements {
			if element, ok := element.(map[string]any); ok {
				f(element)
			}
		}
	}
	container := func(c map[string]any) {
		image, _ := c["image"].(string)
		setDefault(c, "imagePullPolicy", pullPolicy(image))
		ports, _ := c["ports"].([]any)
		for _, port := range ports {
			if port, ok := port.(map[string]any); ok && spec["hostNetwork"] == true {
				setDefault(port, "hostPort", port["containerPort"])
			}
		}
	}
	each("initContainers", container)
	each("containers", container)
	each("volumes", func(volume map[string]any) {
		if _, ok := volume["name"]; ok && len(volume) == 1 {
			volume["emptyDir"] = map[string]any{}
		}
	})
	for name, other := range map[string]string{"serviceAccount": "serviceAccountName",
		"serviceAccountName": "serviceAccount"} {
		if spec != nil && spec[other] != nil {
			setDefault(spec, name, spec[other])
		}
	}
}

func setDefault(obj map[string]any, name string, value any) {
	if obj[name] == nil || obj[name] == "" {
		obj[name] = value
	}
}

// pullPolicy depends on the tag: an image without one, or with latest, is pulled always.
func pullPolicy(image string) string {
	name := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ := strings.Cut(name, ":")
	if strings.Contains(name, "@") || (tag != "" && tag != "latest") {
		return "IfNotPresent"
	}
	return "Always"
}
