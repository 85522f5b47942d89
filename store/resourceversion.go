// SPDX-License-Identifier: Apache-2.0

package store

import "strconv"

// GaugeMetric receives a number each time it changes. Set must neither block nor call the store.
//
// Source: tools/cache/reflector_metrics.go GaugeMetric
type GaugeMetric interface {
	Set(float64)
}

// LastStoreSyncResourceVersion is the newest resourceVersion that reached the store, unless that is hidden.
func (m *threadSafeMap) LastStoreSyncResourceVersion() string {
	if m.hidden != nil && m.hidden() {
		return ""
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.resourceVersion
}

// Bookmark notes a resourceVersion at which no object changed.
func (m *threadSafeMap) Bookmark(resourceVersion string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setResourceVersionLocked(resourceVersion)
}

func (m *threadSafeMap) setResourceVersionLocked(resourceVersion string) {
	m.resourceVersion = resourceVersion
	if m.gauge == nil {
		return
	}
	if number, ok := gaugeValue(resourceVersion); ok {
		m.gauge.Set(number)
	}
}

// resourceVersionOf reads the resourceVersion of an object that has metadata.
func resourceVersionOf(obj any) (resourceVersion string, known bool) {
	if obj == nil {
		return "", false
	}
	m, err := accessor(obj)
	if err != nil {
		return "", false
	}
	return m.GetResourceVersion(), true
}

// A float64 holds every integer below 2^53 exactly, that is any of 15 digits.
const gaugeDigits = 15

// gaugeValue is the number that the last digits of resourceVersion make, 0 for none.
func gaugeValue(resourceVersion string) (number float64, ok bool) {
	if resourceVersion == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(resourceVersion[max(0, len(resourceVersion)-gaugeDigits):], 10, 64)
	return float64(n), err == nil
}
