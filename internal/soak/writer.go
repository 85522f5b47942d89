// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
)

const (
	namespace = "default"
	// writtenAt is the annotation with the time of the write, in nanoseconds since 1970.
	writtenAt = "soak/written-at"
	// Each deleteEvery-th write of an object that exists deletes it; the next write creates it
	// again. So one name in deleteEvery+1 has no object.
	deleteEvery = 20
	// Each second write is one of the first hotNames objects, so that their keys change while they
	// are queued and worked on. Each other object changes rarely: a lost change stays visible.
	hotNames = 1000
	// writesEvery is the time between two bursts of writes.
	writesEvery = 10 * time.Millisecond
)

func nameOf(n int) string { return fmt.Sprintf("object-%06d", n) }

// numberOf is the inverse of nameOf.
func numberOf(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "object-"))
	if err != nil {
		panic(fmt.Sprintf("an object that was never written: %q", name))
	}
	return n
}

// payload gives an object of a usual size: about a kilobyte of JSON.
var payload = strings.Repeat("informerstack ", 40)

func object(n int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: nameOf(n),
			Labels:      map[string]string{"app": "soak", "shard": strconv.Itoa(n % 100)},
			Annotations: map[string]string{writtenAt: strconv.FormatInt(time.Now().UnixNano(), 10)},
		},
		Data: map[string]string{"payload": payload},
	}
}

// writer changes the objects of the server. It calls the server directly: the changes travel over
// HTTP, the writes do not. One goroutine may use it.
type writer struct {
	server *apitest.Server
	ledger *ledger
	random *rand.Rand
	writes atomic.Int64
}

// fill creates the objects, except those that would be deleted at the moment.
func (w *writer) fill() error {
	for n := range w.ledger.entries {
		if n%(deleteEvery+1) == 0 {
			continue
		}
		if err := w.write(n, w.create); err != nil {
			return err
		}
	}
	return nil
}

// run makes rate changes per second until ctx is done. It never writes faster to catch up by more
// than a second, so a slow machine reaches less.
func (w *writer) run(ctx context.Context, rate int) error {
	tick := time.NewTicker(writesEvery)
	defer tick.Stop()
	for due, last := 0.0, time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			due = min(due+float64(rate)*now.Sub(last).Seconds(), float64(rate))
			last = now
		}
		for ; due >= 1; due-- {
			if err := w.change(); err != nil {
				return err
			}
		}
	}
}

func (w *writer) change() error {
	n := w.random.IntN(len(w.ledger.entries))
	if w.random.IntN(2) == 0 {
		n = w.random.IntN(min(hotNames, len(w.ledger.entries)))
	}
	switch {
	case w.ledger.get(n).absent():
		return w.write(n, w.create)
	case w.random.IntN(deleteEvery) == 0:
		return w.write(n, w.delete)
	}
	return w.write(n, w.update)
}

func (w *writer) create(obj *corev1.ConfigMap) error { return w.server.Create(obj) }
func (w *writer) update(obj *corev1.ConfigMap) error { return w.server.Update(obj) }
func (w *writer) delete(obj *corev1.ConfigMap) error { return w.server.Delete(obj) }

// write writes object n, and notes its new version: no other write can come between.
func (w *writer) write(n int, how func(*corev1.ConfigMap) error) error {
	obj := object(n)
	if err := how(obj); err != nil {
		return fmt.Errorf("write %s: %w", obj.Name, err)
	}
	version, err := strconv.ParseUint(w.server.ResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("read the server's resourceVersion: %w", err)
	}
	m := present(version)
	if obj.ResourceVersion == "" { // a delete leaves the argument as it is
		m = deleted(version)
	}
	w.ledger.note(n, m)
	w.writes.Add(1)
	return nil
}
