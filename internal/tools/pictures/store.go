// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

// newPod returns a pod with a version.
func newPod(name, node, resourceVersion string) *corev1.Pod {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: resourceVersion}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: node}}
}

// storeColumn is the first and the last column of a picture of a store: the values of one index.
type storeColumn struct {
	index string
	x     int
	right bool // of the items
}

// drawStore draws the items and the indexes of a store with four pods.
func drawStore(string) ([]byte, error) {
	byNode := func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}
	byApp := func(obj any) ([]string, error) {
		if app := obj.(*corev1.Pod).Labels["app"]; app != "" {
			return []string{app}, nil
		}
		return nil, nil
	}
	indexer := store.New(store.MetaNamespaceKeyFunc, store.Options{
		Indexers: store.Indexers{"byNode": byNode, "byApp": byApp},
	})
	for _, pod := range []struct{ name, node, app string }{
		{"a", "node-1", "api"}, {"b", "node-2", ""}, {"c", "node-1", "api"}, {"d", "node-3", "db"},
	} {
		object := newPod(pod.name, pod.node, "")
		if pod.app != "" {
			object.Labels = map[string]string{"app": pod.app}
		}
		if err := indexer.Add(object); err != nil {
			return nil, err
		}
	}
	c := &canvas{
		width: 980, height: 330, title: "The items and the indexes of a store",
		desc: "The items are objects by key. Each index leads from a value to the keys of the " +
			"objects that have it. An object without a value is not in that index.",
	}
	if err := c.store(indexer); err != nil {
		return nil, err
	}
	return c.svg(), nil
}

func (c *canvas) store(indexer store.Indexer) error {
	c.centred("head", 490, 40, "items")
	c.centred("small dim", 490, 60, "key → object")
	keys := slices.Sorted(slices.Values(indexer.ListKeys()))
	rows := map[string]int{} // the y of each key
	for i, key := range keys {
		rows[key] = 80 + i*58
		c.rect("card", 390, rows[key], 200, 44, 10)
		c.chip(i%4, 402, rows[key]+10, 70, key)
		obj, _, err := indexer.GetByKey(key)
		if err != nil {
			return err
		}
		c.text("small dim", 486, rows[key]+27, "Pod on "+obj.(*corev1.Pod).Spec.NodeName)
	}
	for _, column := range []storeColumn{{"byApp", 60, false}, {"byNode", 720, true}} {
		if err := c.index(indexer, column, rows); err != nil {
			return err
		}
	}
	return nil
}

// index draws the values of an index, with an arrow to each key.
func (c *canvas) index(indexer store.Indexer, column storeColumn, rows map[string]int) error {
	c.centred("head", column.x+100, 40, column.index)
	c.centred("small dim", column.x+100, 60, "indexed value → keys")
	values := slices.Sorted(slices.Values(indexer.ListIndexFuncValues(column.index)))
	for i, value := range values {
		keys, err := indexer.IndexKeys(column.index, value)
		if err != nil {
			return err
		}
		slices.Sort(keys)
		y := 80 + (len(rows)-len(values))*29 + i*58
		c.rect("card", column.x, y, 200, 44, 10)
		c.text("mono", column.x+14, y+27, value)
		for _, key := range keys {
			from, to := point{column.x + 200, y + 22}, point{390, rows[key] + 22}
			if column.right {
				from, to = point{column.x, y + 22}, point{590, rows[key] + 22}
			}
			c.arrow(false, from, to)
		}
	}
	return nil
}
