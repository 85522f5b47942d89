// SPDX-License-Identifier: Apache-2.0

package store

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkLaws checks S1 to S4, and that a write that succeeded leaves nothing in its scratch space.
func checkLaws(t *testing.T, m *threadSafeMap) {
	t.Helper()
	m.mu.RLock()
	defer m.mu.RUnlock()
	checkTable(t, m.table)
}

func checkTable(t *testing.T, tab *table) {
	t.Helper()
	require.Equal(t, len(tab.slots), len(tab.items)+len(tab.free), "S1: every slot is used or free")
	for key, it := range tab.items {
		require.Equal(t, slot{key, it.obj}, tab.slots[it.slot], "S1: slot of %q", key)
		require.Same(t, unsafe.StringData(key), unsafe.StringData(tab.slots[it.slot].key), "S1: one string for %q", key)
	}
	free := map[uint32]bool{}
	for _, n := range tab.free {
		require.False(t, free[n], "S1: slot %d is free twice", n)
		free[n] = true
		require.Equal(t, slot{obj: vacant{}}, tab.slots[n], "S1: slot %d is free", n)
	}
	refs := make([]uint32, len(tab.slots))
	for _, x := range tab.indices {
		want := map[string]map[uint32]bool{}
		for _, it := range tab.items {
			if it.obj == nil {
				continue
			}
			values, err := x.indexFunc(it.obj)
			require.NoError(t, err)
			for _, v := range values {
				if want[v] == nil {
					want[v] = map[uint32]bool{}
				}
				want[v][it.slot] = true
			}
		}
		got := map[string]map[uint32]bool{}
		for value, set := range x.sets {
			got[value] = map[uint32]bool{}
			for n := range set.all {
				require.True(t, set.has(n))
				got[value][n] = true
				refs[n]++
			}
			require.Len(t, got[value], set.len(), "S3")
			require.NotZero(t, set.len(), "S3")
			require.True(t, set.many == nil || set.len() > 1, "S3: a set of one has no table")
		}
		require.Equal(t, want, got, "S2: index %s", x.name)
	}
	for key, it := range tab.items {
		require.Equal(t, refs[it.slot], it.refs, "S4: %q", key)
	}
	for _, scratch := range [][][]string{tab.oldValues, tab.newValues} {
		for _, values := range scratch[:cap(scratch)] {
			require.Nil(t, values, "scratch space keeps %v", values)
		}
	}
}

// pod makes a test object: "ns/name node=n1 tags=a,b rv=7".
func pod(text string) *corev1.Pod {
	words := strings.Fields(text)
	name, err := ParseObjectName(words[0])
	if err != nil {
		panic(err)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	for _, word := range words[1:] {
		field, value, _ := strings.Cut(word, "=")
		switch field {
		case "node":
			p.Spec.NodeName = value
		case "rv":
			p.ResourceVersion = value
		default:
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, field, value)
			metav1.SetMetaDataLabel(&p.ObjectMeta, field, value)
		}
	}
	return p
}

// byNode indexes nothing of a pod without a node, byTag any number of values, maybe one of them twice.
func byNode(obj any) ([]string, error) {
	if node := obj.(*corev1.Pod).Spec.NodeName; node != "" {
		return []string{node}, nil
	}
	return nil, nil
}

func byTag(obj any) ([]string, error) {
	if tags := obj.(*corev1.Pod).Annotations["tags"]; tags != "" {
		return strings.Split(tags, ","), nil
	}
	return nil, nil
}
