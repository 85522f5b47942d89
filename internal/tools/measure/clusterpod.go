// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	serviceAccountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

	clusterWorkloads  = 2000
	clusterNamespaces = 100
	clusterNodes      = 2000
)

// ClusterPod returns pod i of a cluster: of one of 2,000 workloads, which differ in images, number
// of containers, environment, labels and volumes, on one of 2,000 nodes. It has everything that an
// API server, a scheduler and a kubelet fill in, with managed fields: 10 kB of JSON. Names, UIDs,
// addresses, times and IDs of containers are random, as on a real cluster. The same i is always the
// same pod.
func ClusterPod(i int) *v1.Pod {
	w := newWorkload(i % clusterWorkloads)
	r := rand.New(rand.NewPCG(uint64(i), 2))
	created := metav1.NewTime(epoch.Add(time.Duration(r.IntN(3_000_000)) * time.Second))
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: w.name + "-" + w.hash + "-", Namespace: w.namespace,
			Name: w.name + "-" + w.hash + "-" + letters(r, 5), UID: uid(r),
			ResourceVersion: fmt.Sprint(100_000_000 + r.IntN(1e9)), Generation: 1,
			CreationTimestamp: created, Labels: w.labels, Annotations: w.annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: w.name + "-" + w.hash,
				UID: w.owner, Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
	}
	token := "kube-api-access-" + letters(r, 5)
	pod.Spec = w.spec(token, fmt.Sprintf("ip-10-%d-%d.eu-north-1.compute.internal",
		r.IntN(clusterNodes)/256, r.IntN(clusterNodes)%256))
	pod.Status = w.status(r, created)
	pod.ManagedFields = w.managed(pod)
	return pod.DeepCopy() // pods of a workload share nothing, as if each was decoded
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// workload is a Deployment of a cluster.
type workload struct {
	name, namespace, hash string
	owner                 types.UID
	labels, annotations   map[string]string
	containers            []v1.Container
	images                []string // with digest, by container
	config                string   // name of its ConfigMap
}

func newWorkload(n int) *workload {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	team := words[n%clusterNamespaces%len(words)]
	w := &workload{
		name:      pick(r) + "-" + pick(r) + fmt.Sprint("-", n%10),
		namespace: fmt.Sprintf("%s-%d", team, n%clusterNamespaces),
		hash:      letters(r, 10), owner: uid(r),
	}
	w.config = w.name + "-config"
	w.labels = map[string]string{
		"app.kubernetes.io/name": w.name, "app.kubernetes.io/instance": w.name + "-prod",
		"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/part-of": team,
		"helm.sh/chart":     fmt.Sprintf("%s-%d.%d.%d", w.name, r.IntN(9), r.IntN(20), r.IntN(9)),
		"pod-template-hash": w.hash,
	}
	w.annotations = map[string]string{
		"checksum/config":      hex(r, 64),
		"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
		"kubectl.kubernetes.io/restartedAt": epoch.Add(time.Duration(n) * time.Hour).String(),
	}
	for c := range []int{1, 1, 1, 1, 1, 1, 2, 2, 2, 3}[r.IntN(10)] {
		w.addContainer(r, c)
	}
	return w
}

func (w *workload) addContainer(r *rand.Rand, c int) {
	name := []string{"app", "istio-proxy", "log-shipper"}[c]
	repository := fmt.Sprintf("registry.example.com/%s/%s", w.namespace, pick(r)+"-"+name)
	tag := fmt.Sprintf("v%d.%d.%d", r.IntN(5), r.IntN(40), r.IntN(20))
	w.images = append(w.images, repository+"@sha256:"+hex(r, 64))
	container := v1.Container{
		Name: name, Image: repository + ":" + tag, ImagePullPolicy: v1.PullIfNotPresent,
		Args: []string{"--config=/etc/" + name + "/config.yaml", fmt.Sprint("--v=", r.IntN(5))},
		Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{
				v1.ResourceCPU:    resource.MustParse(fmt.Sprint(1+r.IntN(20), "00m")),
				v1.ResourceMemory: resource.MustParse(fmt.Sprint(64*(1+r.IntN(30)), "Mi")),
			},
			Limits: v1.ResourceList{
				v1.ResourceMemory: resource.MustParse(fmt.Sprint(64*(30+r.IntN(30)), "Mi")),
			},
		},
		Ports: []v1.ContainerPort{
			{Name: "http", ContainerPort: int32(8000 + r.IntN(999)), Protocol: v1.ProtocolTCP},
			{Name: "metrics", ContainerPort: 9090, Protocol: v1.ProtocolTCP},
		},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		TerminationMessagePath:   "/dev/termination-log",
		TerminationMessagePolicy: v1.TerminationMessageReadFile,
		SecurityContext: &v1.SecurityContext{
			AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true),
			ReadOnlyRootFilesystem: new(true),
			Capabilities:           &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
		},
	}
	for range r.IntN(8) {
		container.Env = append(container.Env, v1.EnvVar{
			Name: strings.ToUpper(pick(r) + "_" + pick(r)),
			Value: fmt.Sprintf(
				"https://%s.%s.svc.cluster.local:%d", pick(r), pick(r), r.IntN(9999)),
		})
	}
	container.Env = append(container.Env, v1.EnvVar{Name: "POD_NAME", ValueFrom: &v1.EnvVarSource{
		FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
	}})
	w.containers = append(w.containers, container)
}

func probe(path string) *v1.Probe {
	return &v1.Probe{
		ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{
			Path: path, Port: intstr.FromString("http"), Scheme: v1.URISchemeHTTP,
		}},
		InitialDelaySeconds: 5, TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1,
		FailureThreshold: 3,
	}
}

func (w *workload) spec(token, node string) v1.PodSpec {
	spec := v1.PodSpec{
		NodeName: node, ServiceAccountName: w.name, DeprecatedServiceAccount: w.name,
		RestartPolicy: v1.RestartPolicyAlways, DNSPolicy: v1.DNSClusterFirst,
		SchedulerName: "default-scheduler", TerminationGracePeriodSeconds: new(int64(30)),
		SecurityContext: &v1.PodSecurityContext{FSGroup: new(int64(2000))}, Priority: new(int32(0)),
		PreemptionPolicy: new(v1.PreemptLowerPriority), EnableServiceLinks: new(true),
		Tolerations: []v1.Toleration{
			toleration(v1.TaintNodeNotReady), toleration(v1.TaintNodeUnreachable),
		},
		Volumes: []v1.Volume{
			{Name: "config", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
				LocalObjectReference: v1.LocalObjectReference{Name: w.config},
				DefaultMode:          new(int32(420)),
			}}},
			tokenVolume(token),
		},
	}
	for _, c := range w.containers {
		c.VolumeMounts = []v1.VolumeMount{
			{Name: "config", MountPath: "/etc/" + c.Name},
			{Name: token, MountPath: serviceAccountPath, ReadOnly: true},
		}
		spec.Containers = append(spec.Containers, c)
	}
	return spec
}

func toleration(key string) v1.Toleration {
	return v1.Toleration{
		Key: key, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute,
		TolerationSeconds: new(int64(300)),
	}
}

func tokenVolume(name string) v1.Volume {
	sources := []v1.VolumeProjection{
		{ServiceAccountToken: &v1.ServiceAccountTokenProjection{
			ExpirationSeconds: new(int64(3607)), Path: "token",
		}},
		{ConfigMap: &v1.ConfigMapProjection{
			LocalObjectReference: v1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items:                []v1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
		{DownwardAPI: &v1.DownwardAPIProjection{Items: []v1.DownwardAPIVolumeFile{{
			Path: "namespace", FieldRef: &v1.ObjectFieldSelector{
				APIVersion: "v1", FieldPath: "metadata.namespace",
			},
		}}}},
	}
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{
		Projected: &v1.ProjectedVolumeSource{DefaultMode: new(int32(420)), Sources: sources},
	}}
}

func (w *workload) status(r *rand.Rand, created metav1.Time) v1.PodStatus {
	after := func(seconds int) metav1.Time {
		return metav1.NewTime(created.Add(time.Duration(1+r.IntN(seconds)) * time.Second))
	}
	ip := fmt.Sprintf("10.%d.%d.%d", r.IntN(256), r.IntN(256), r.IntN(256))
	host := fmt.Sprintf("192.168.%d.%d", r.IntN(8), r.IntN(256))
	status := v1.PodStatus{
		Phase: v1.PodRunning, PodIP: ip, PodIPs: []v1.PodIP{{IP: ip}}, HostIP: host,
		HostIPs: []v1.HostIP{{IP: host}}, StartTime: new(after(5)), QOSClass: v1.PodQOSBurstable,
	}
	for _, kind := range []v1.PodConditionType{
		"PodReadyToStartContainers", v1.PodInitialized, v1.PodReady, v1.ContainersReady,
		v1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, v1.PodCondition{
			Type: kind, Status: v1.ConditionTrue, LastTransitionTime: after(60),
			ObservedGeneration: 1,
		})
	}
	for i, c := range w.containers {
		running := &v1.ContainerStateRunning{StartedAt: after(30)}
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Ready: true, Started: new(true), Image: c.Image, ImageID: w.images[i],
			ContainerID: "containerd://" + hex(r, 64), RestartCount: int32(r.IntN(20) / 19),
			State:              v1.ContainerState{Running: running},
			AllocatedResources: c.Resources.Requests, Resources: &c.Resources,
		})
	}
	return status
}

// managed is what the managers of a pod of a Deployment have set.
func (w *workload) managed(pod *v1.Pod) []metav1.ManagedFieldsEntry {
	var containers, keys []string
	for _, c := range pod.Spec.Containers {
		var env []string
		for _, e := range c.Env {
			env = append(env, fmt.Sprintf(
				`"k:{\"name\":\"%s\"}":{".":{},"f:name":{},"f:value":{}}`, e.Name))
		}
		containers = append(containers, fmt.Sprintf(
			`"k:{\"name\":\"%s\"}":{".":{},"f:args":{},"f:env":{".":{},%s},"f:image":{},`+
				`"f:imagePullPolicy":{},"f:livenessProbe":%s,"f:name":{},"f:ports":{".":{},`+
				`"k:{\"containerPort\":%d,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},`+
				`"f:name":{},"f:protocol":{}}},"f:readinessProbe":%s,"f:resources":{".":{},`+
				`"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},`+
				`"f:memory":{}}},"f:securityContext":{".":{},"f:allowPrivilegeEscalation":{},"f:capabilities":`+
				`{".":{},"f:drop":{}},"f:readOnlyRootFilesystem":{},"f:runAsNonRoot":{}},`+
				`"f:terminationMessagePath":{},"f:terminationMessagePolicy":{},"f:volumeMounts":`+
				`{".":{},"k:{\"mountPath\":\"/etc/%s\"}":{".":{},"f:mountPath":{},"f:name":{}}}}`,
			c.Name, strings.Join(env, ","), managedProbe, c.Ports[0].ContainerPort, managedProbe,
			c.Name))
	}
	for _, key := range slices.Sorted(maps.Keys(w.labels)) {
		keys = append(keys, fmt.Sprintf(`"f:%s":{}`, key))
	}
	created := pod.CreationTimestamp
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", created, `{"f:metadata":{"f:annotations":{".":{},`+
			`"f:checksum/config":{},"f:kubectl.kubernetes.io/restartedAt":{},`+
			`"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},`+
			`"f:labels":{".":{},`+strings.Join(keys, ",")+`},"f:ownerReferences":{".":{},`+
			`"k:{\"uid\":\"`+string(w.owner)+`\"}":{}}},"f:spec":{"f:containers":{`+
			strings.Join(containers, ",")+`},"f:dnsPolicy":{},"f:enableServiceLinks":{},`+
			`"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{".":{},`+
			`"f:fsGroup":{}},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},`+
			`"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},`+
			`"f:defaultMode":{},"f:name":{}},"f:name":{}}}}}`),
		entry("kubelet", "status", *pod.Status.StartTime, `{"f:status":{"f:conditions":{`+
			managedCondition("ContainersReady")+","+managedCondition("Initialized")+","+
			managedCondition("PodReadyToStartContainers")+","+managedCondition("Ready")+
			`},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},`+
			`"f:podIPs":{".":{},"k:{\"ip\":\"`+pod.Status.PodIP+`\"}":{".":{},"f:ip":{}}},`+
			`"f:startTime":{}}}`),
	}
}

const managedProbe = `{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},` +
	`"f:port":{},"f:scheme":{}},"f:initialDelaySeconds":{},"f:periodSeconds":{},` +
	`"f:successThreshold":{},"f:timeoutSeconds":{}}`

func managedCondition(kind string) string {
	return `"k:{\"type\":\"` + kind + `\"}":{".":{},"f:lastProbeTime":{},` +
		`"f:lastTransitionTime":{},"f:observedGeneration":{},"f:status":{},"f:type":{}}`
}

func entry(manager, subresource string, at metav1.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		Time: &at, FieldsType: "FieldsV1", Subresource: subresource,
		//lint:ignore SA1019 its replacement is newer than the oldest client-go
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

var words = strings.Fields("alpha atlas billing cart catalog checkout cloud core data edge " +
	"email events export feed gateway graph image import index ingest inventory invoice ledger " +
	"login mail media metrics notify order parser payment pricing profile proxy queue rating " +
	"report reward risk router search session shipping stock stream support sync tax ticket " +
	"token trace upload user vault video voucher wallet warehouse webhook worker")

func pick(r *rand.Rand) string { return words[r.IntN(len(words))] }

// letters returns n letters of those that Kubernetes uses for random names.
func letters(r *rand.Rand, n int) string { return random(r, n, "bcdfghjklmnpqrstvwxz2456789") }

func hex(r *rand.Rand, n int) string { return random(r, n, "0123456789abcdef") }

func random(r *rand.Rand, n int, alphabet string) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(text)
}

func uid(r *rand.Rand) types.UID {
	return types.UID(fmt.Sprintf("%s-%s-4%s-a%s-%s",
		hex(r, 8), hex(r, 4), hex(r, 3), hex(r, 3), hex(r, 12)))
}
