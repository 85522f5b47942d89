// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	t.ColumnDefinitions = c.resource.table.Columns
	return t
}

var endedPods = map[string]string{
	"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed.",
}

// addRow adds an object. includeObject selects how much of it the row contains.
func (c *call) addRow(t *metav1.Table, e encoded, o *object) {
	row := metav1.TableRow{Cells: c.resource.table.Cells(e.json)}
	phase := o.fieldAt("status.phase")
	if why := endedPods[phase]; why != "" && c.resource.GroupResource().String() == "pods" {
		row.Conditions = []metav1.TableRowCondition{{Type: metav1.RowCompleted,
			Status: metav1.ConditionTrue, Reason: phase, Message: why}}
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
