// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/store"
)

// The page controls the workload.
var _ lab.Workload = (*workload)(nil)

var errNoObject = errors.New("the workload has no object: create one first")

// Rate is the number of changes per second.
func (w *workload) Rate() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rate
}

// Objects is the number of objects at the start.
func (w *workload) Objects() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects
}

// Set changes the rate and the number of objects, and creates those that are missing.
func (w *workload) Set(rate float64, objects int) error {
	w.mu.Lock()
	w.rate, w.objects = rate, objects
	w.mu.Unlock()
	w.fill()
	select {
	case w.changed <- struct{}{}:
	default: // run will read the new rate
	}
	return nil
}

// Faults reports whether requests fail at random.
func (w *workload) Faults() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unfault != nil
}

// SetFaults makes requests fail at random, or ends that.
func (w *workload) SetFaults(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case on && w.unfault == nil:
		w.unfault = w.server.Faults().Random(w.seed, faultRates)
	case !on && w.unfault != nil:
		w.unfault()
		w.unfault = nil
	}
}

// Create creates the ConfigMap with this key, or with the next name.
func (w *workload) Create(key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key == "" {
		w.create()
		return nil
	}
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	m := configMap(name)
	m.Namespace = namespace
	m.Labels = map[string]string{"team": teams[len(name)%len(teams)], checksumName: "true"}
	m.Data = w.data()
	return w.server.Create(m)
}

// Change changes the data of the ConfigMap with this key, or of one of the workload. It tries again
// if the controller writes at the same time.
func (w *workload) Change(key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.pick(key)
	if err != nil {
		return err
	}
	for {
		if err := w.server.Get(m); err != nil {
			return err
		}
		m.Data = w.data()
		if err := w.server.Update(m); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// Delete deletes the ConfigMap with this key, or one of the workload.
func (w *workload) Delete(key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, err := w.pick(key)
	if err != nil {
		return err
	}
	if err := w.server.Delete(m); err != nil {
		return err
	}
	if i := slices.Index(w.names, m.Name); i >= 0 && m.Namespace == configMap("").Namespace {
		w.forget(i)
	}
	return nil
}

// pick returns a ConfigMap with this key, or with that of a random object of the workload.
func (w *workload) pick(key string) (*corev1.ConfigMap, error) {
	if key == "" {
		if len(w.names) == 0 {
			return nil, errNoObject
		}
		return configMap(w.names[w.random.IntN(len(w.names))]), nil
	}
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	m := configMap(name)
	m.Namespace = namespace
	return m, nil
}
