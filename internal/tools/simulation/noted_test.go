// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/controller"
)

const (
	writePatience = time.Second // how long a noted process waits for a newer copy, before it looks
	factsLast     = time.Minute // an answer proves nothing about a copy after that
)

// answers are what the answers to the noted processes, which share a Writes, have shown about each
// object.
type answers struct {
	mu    sync.Mutex
	known map[types.UID]*answer
}

// answer holds the facts about one object.
type answer struct {
	version uint64 // older copies are old
	refused bool   // this one is old, too
	at      time.Time
	sending int // writes that have no answer yet
	began   time.Time
}

// at returns the facts about an object that still count.
func (a *answers) at(uid types.UID) *answer {
	if a.known == nil {
		a.known = map[types.UID]*answer{}
	}
	known := a.known[uid]
	if known == nil {
		known = &answer{}
		a.known[uid] = known
	}
	if time.Since(known.at) >= factsLast {
		known.version, known.refused = 0, false
	}
	return known
}

// sender sends the writes of a noted process, and checks that the server does not refuse them for a
// reason that an answer has shown.
type sender struct {
	controller.Writer[*corev1.ConfigMap]
	p *process
}

func (s sender) Update(
	ctx context.Context, cm *corev1.ConfigMap, options metav1.UpdateOptions,
) (*corev1.ConfigMap, error) {
	a, uid, version := &s.p.answers, cm.UID, number(cm.ResourceVersion)
	a.mu.Lock()
	known, now := a.at(uid), time.Now()
	isOld := version < known.version || version == known.version && known.refused
	if isOld && known.at.Before(now) { // what arrives at the same instant may be late
		s.p.violate(13, "%s writes %s@%d, and an answer has shown that it is older than %d",
			s.p.name, cm.Name, version, known.version)
	}
	if known.sending > 0 && now.Sub(known.began) < factsLast {
		s.p.violate(13, "%s writes %s beside another write", s.p.name, cm.Name)
	}
	known.sending, known.began = known.sending+1, now
	a.mu.Unlock()
	written, err := s.Writer.Update(ctx, cm, options)
	a.mu.Lock()
	defer a.mu.Unlock()
	known = a.at(uid)
	known.sending--
	switch {
	case err == nil:
		known.learn(number(written.ResourceVersion), false)
	case apierrors.IsConflict(err):
		s.p.cover("noted conflict")
		known.learn(version, true)
	}
	return written, err
}

func (a *answer) learn(version uint64, refused bool) {
	a.at = time.Now()
	if version >= a.version {
		a.version, a.refused = version, refused
	}
}

// update writes a copy for a key, and notes the answer.
func (k *work) update(
	ctx context.Context, key string, cm *corev1.ConfigMap,
) (*corev1.ConfigMap, error) {
	var client controller.Writer[*corev1.ConfigMap] = k.p.client.CoreV1().ConfigMaps(cm.Namespace)
	if k.p.has(custom) {
		client = k.p.customs.Namespace(cm.Namespace)
	}
	if k.p.has(noted) {
		client := controller.Note(k.writes, k.noteKey(key), sender{client, k.p})
		return client.Update(ctx, cm, metav1.UpdateOptions{})
	}
	written, err := client.Update(ctx, cm, metav1.UpdateOptions{})
	if err == nil {
		k.writes.Wrote(k.noteKey(key), written.ResourceVersion)
	}
	return written, err
}

// noteKey is the key under which a write is noted: a Writes of several processes, each with a cache
// of its own, has their names.
func (k *work) noteKey(key string) string { return k.p.name + " " + key }
