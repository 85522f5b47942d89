// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// column is one column between the name and the age.
type column struct {
	name string
	kind string
	cell func(*object) any
}

// columns are those that kubectl prints for the most common kinds. Other kinds have their name and
// age.
var columns = map[string][]column{
	"configmaps.": {{"Data", "string",
		func(o *object) any { return countFields(o, "data") + countFields(o, "binaryData") }}},
	"secrets.": {at("Type", "type"),
		{"Data", "string", func(o *object) any { return countFields(o, "data") }}},
	"namespaces.": {at("Status", "status.phase")},
	"pods.":       {at("Status", "status.phase"), at("Node", "spec.nodeName")},
	"services.":   {at("Type", "spec.type"), at("Cluster-IP", "spec.clusterIP")},
	"deployments.apps": {at("Ready", "status.readyReplicas"), at("Desired", "spec.replicas"),
		at("Available", "status.availableReplicas")},
	"replicasets.apps": {at("Desired", "spec.replicas"), at("Current", "status.replicas"),
		at("Ready", "status.readyReplicas")},
	"leases.coordination.k8s.io": {
		at("Holder", "spec.holderIdentity"),
	},
}

func at(name, path string) column {
	return column{name, "string", func(o *object) any { return o.fieldAt(path) }}
}

func countFields(o *object, field string) int {
	var fields map[string]json.RawMessage
	if json.Unmarshal(o.fields[field], &fields) != nil {
		return 0
	}
	return len(fields)
}

// columns returns those between the name and the age of a built-in kind.
func (r *Resource) columns() []column { return columns[r.Plural+"."+r.Group] }

// newTable returns a table without rows. A watch sends the columns only with its first table.
func (c *call) newTable(meta metav1.ListMeta, withColumns bool) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: metav1.SchemeGroupVersion.String()},
		ListMeta: meta,
		Rows:     []metav1.TableRow{},
	}
	if !withColumns || c.Query.Get("noHeaders") == "true" {
		return t
	}
	add := func(name, kind, format string) {
		t.ColumnDefinitions = append(t.ColumnDefinitions,
			metav1.TableColumnDefinition{Name: name, Type: kind, Format: format})
	}
	add("Name", "string", "name")
	if c.resource.printed == nil {
		for _, col := range c.resource.columns() {
			add(col.name, col.kind, "")
		}
		add("Age", "string", "")
	}
	for _, p := range c.resource.printed {
		t.ColumnDefinitions = append(t.ColumnDefinitions, p.definition())
	}
	return t
}

// addRow adds an object. includeObject selects how much of it the row contains.
func (c *call) addRow(t *metav1.Table, e encoded, o *object) {
	row := metav1.TableRow{Cells: []any{o.meta.Name}}
	if c.resource.printed == nil {
		for _, col := range c.resource.columns() {
			row.Cells = append(row.Cells, col.cell(o))
		}
		row.Cells = append(row.Cells, age(o.meta.CreationTimestamp))
	} else {
		content := o.content()
		for _, p := range c.resource.printed {
			row.Cells = append(row.Cells, p.cell(content))
		}
	}
	switch metav1.IncludeObjectPolicy(c.Query.Get("includeObject")) {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object.Raw = e.json
	default:
		row.Object.Raw = fmt.Appendf([]byte(partialHead), "%s}", e.metadata())
	}
	t.Rows = append(t.Rows, row)
}

func (c *call) table(items []*version, meta metav1.ListMeta) *metav1.Table {
	t := c.newTable(meta, true)
	for _, v := range items {
		v = c.resource.show(v)
		c.addRow(t, v.encoded, v.object)
	}
	return t
}

func age(created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}
