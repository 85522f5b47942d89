// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 one of the locks is an Endpoints object

package resourcelock

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EndpointsLock keeps the record in an annotation of an Endpoints object. client-go had it until
// 0.24. Every node of a cluster may watch Endpoints, so each renewal is sent to all of them.
//
// Source: tools/leaderelection/resourcelock/interface.go LeaderElectionRecordAnnotationKey
type EndpointsLock struct {
	// EndpointsMeta has the object's name and namespace.
	EndpointsMeta metav1.ObjectMeta
	// Client reaches the Endpoints of that namespace.
	Client     Client[corev1.Endpoints]
	LockConfig ResourceLockConfig
	// Labels are set on the object with each write; other labels stay.
	Labels map[string]string

	endpoints held[corev1.Endpoints, *corev1.Endpoints]
}

// Get reads the annotation; without it the record is empty. The bytes are the annotation's.
func (l *EndpointsLock) Get(ctx context.Context) (*LeaderElectionRecord, []byte, error) {
	endpoints, err := l.endpoints.get(ctx, l.Client, l.EndpointsMeta.Name)
	if err != nil {
		return nil, nil, err
	}
	return readAnnotation("endpoints", endpoints)
}

// Create makes the object, with the annotation and no addresses.
func (l *EndpointsLock) Create(ctx context.Context, record LeaderElectionRecord) error {
	endpoints := &corev1.Endpoints{ObjectMeta: newMeta(l.EndpointsMeta, l.Labels)}
	if err := writeAnnotation(endpoints, record); err != nil {
		return err
	}
	return l.endpoints.create(ctx, l.Client, endpoints)
}

// Update replaces the annotation in the object as it was last read or written. It fails if the
// object was never read or written.
func (l *EndpointsLock) Update(ctx context.Context, record LeaderElectionRecord) error {
	err := l.endpoints.update(ctx, l.Client, l.Labels, func(endpoints *corev1.Endpoints) error {
		return writeAnnotation(endpoints, record)
	})
	if err == errNotRead {
		return fmt.Errorf("endpoint %w", err)
	}
	return err
}

// RecordEvent records an event of the object.
func (l *EndpointsLock) RecordEvent(event string) {
	meta := l.EndpointsMeta
	if endpoints := l.endpoints.load(); endpoints != nil {
		meta = endpoints.ObjectMeta
	}
	kind := metav1.TypeMeta{Kind: "Endpoints", APIVersion: "v1"}
	l.LockConfig.record(&corev1.Endpoints{TypeMeta: kind, ObjectMeta: meta}, event)
}

// Identity returns the candidate's name.
func (l *EndpointsLock) Identity() string { return l.LockConfig.Identity }

// Describe returns namespace/name.
func (l *EndpointsLock) Describe() string {
	return l.EndpointsMeta.Namespace + "/" + l.EndpointsMeta.Name
}

// UID returns the UID of the object as it was last read or written.
func (l *EndpointsLock) UID() types.UID { return l.endpoints.uid() }

// ConfigMapLock keeps the record in an annotation of a ConfigMap. client-go had it until 0.24.
//
// Source: tools/leaderelection/resourcelock/interface.go LeaderElectionRecordAnnotationKey
type ConfigMapLock struct {
	// ConfigMapMeta has the object's name and namespace.
	ConfigMapMeta metav1.ObjectMeta
	// Client reaches the ConfigMaps of that namespace.
	Client     Client[corev1.ConfigMap]
	LockConfig ResourceLockConfig
	// Labels are set on the object with each write; other labels stay.
	Labels map[string]string

	configMap held[corev1.ConfigMap, *corev1.ConfigMap]
}

// Get reads the annotation; without it the record is empty. The bytes are the annotation's.
func (l *ConfigMapLock) Get(ctx context.Context) (*LeaderElectionRecord, []byte, error) {
	configMap, err := l.configMap.get(ctx, l.Client, l.ConfigMapMeta.Name)
	if err != nil {
		return nil, nil, err
	}
	return readAnnotation("configmap", configMap)
}

// Create makes the object, with the annotation and no data.
func (l *ConfigMapLock) Create(ctx context.Context, record LeaderElectionRecord) error {
	configMap := &corev1.ConfigMap{ObjectMeta: newMeta(l.ConfigMapMeta, l.Labels)}
	if err := writeAnnotation(configMap, record); err != nil {
		return err
	}
	return l.configMap.create(ctx, l.Client, configMap)
}

// Update replaces the annotation in the object as it was last read or written. It fails if the
// object was never read or written.
func (l *ConfigMapLock) Update(ctx context.Context, record LeaderElectionRecord) error {
	err := l.configMap.update(ctx, l.Client, l.Labels, func(configMap *corev1.ConfigMap) error {
		return writeAnnotation(configMap, record)
	})
	if err == errNotRead {
		return fmt.Errorf("configmap %w", err)
	}
	return err
}

// RecordEvent records an event of the object.
func (l *ConfigMapLock) RecordEvent(event string) {
	meta := l.ConfigMapMeta
	if configMap := l.configMap.load(); configMap != nil {
		meta = configMap.ObjectMeta
	}
	kind := metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
	l.LockConfig.record(&corev1.ConfigMap{TypeMeta: kind, ObjectMeta: meta}, event)
}

// Identity returns the candidate's name.
func (l *ConfigMapLock) Identity() string { return l.LockConfig.Identity }

// Describe returns namespace/name.
func (l *ConfigMapLock) Describe() string {
	return l.ConfigMapMeta.Namespace + "/" + l.ConfigMapMeta.Name
}

// UID returns the UID of the object as it was last read or written.
func (l *ConfigMapLock) UID() types.UID { return l.configMap.uid() }

func newMeta(meta metav1.ObjectMeta, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace, Labels: labels}
}

func readAnnotation(kind string, obj metav1.Object) (*LeaderElectionRecord, []byte, error) {
	record := &LeaderElectionRecord{}
	value, found := obj.GetAnnotations()[LeaderElectionRecordAnnotationKey]
	if found {
		if err := json.Unmarshal([]byte(value), record); err != nil {
			return nil, nil, fmt.Errorf("decode annotation %s of %s %s/%s: %w",
				LeaderElectionRecordAnnotationKey, kind, obj.GetNamespace(), obj.GetName(), err)
		}
	}
	return record, []byte(value), nil
}

// writeAnnotation writes record to obj. Every write changes the bytes, because other candidates
// take a change for a sign of life. A record's times have no fraction: of two renewals within one
// second the second is written with one.
func writeAnnotation(obj metav1.Object, record LeaderElectionRecord) error {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	var written any = record
	var old LeaderElectionRecord
	err := json.Unmarshal([]byte(annotations[LeaderElectionRecordAnnotationKey]), &old)
	if err == nil && old.RenewTime.Unix() == record.RenewTime.Unix() {
		written = exactRecord{record, exactTime(record.RenewTime)}
	}
	value, err := json.Marshal(written)
	if err != nil {
		return fmt.Errorf("encode leader election record: %w", err)
	}
	annotations[LeaderElectionRecordAnnotationKey] = string(value)
	obj.SetAnnotations(annotations)
	return nil
}

// exactRecord is a record with a fraction in its renewTime. It decodes as a LeaderElectionRecord.
type exactRecord struct {
	LeaderElectionRecord
	RenewTime exactTime `json:"renewTime"`
}

type exactTime metav1.Time

func (t exactTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.UTC().Format(time.RFC3339Nano))
}
