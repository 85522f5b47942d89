// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// layout is the table of a built-in kind.
type layout struct {
	// the names, with commas; + marks those of the wide table, # integers
	columns string
	row     func(object []byte) []any
}

func (r *Resource) layout() layout {
	if !r.builtin {
		return layout{}
	}
	return layouts[r.Plural+"."+r.Group]
}

// columnDefinitions returns the columns of a kind.
func (r *Resource) columnDefinitions() []metav1.TableColumnDefinition {
	definitions := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name"}}
	for _, p := range r.printed {
		definitions = append(definitions, p.definition())
	}
	if r.printed != nil {
		return definitions
	}
	definitions = nil
	for name := range strings.SplitSeq(cmp.Or(r.layout().columns, "Name,Age"), ",") {
		d := metav1.TableColumnDefinition{Name: strings.TrimRight(name, "+#"), Type: "string"}
		switch {
		case strings.HasSuffix(name, "+"):
			d.Priority = 1
		case strings.HasSuffix(name, "#"):
			d.Type = "integer"
		}
		if d.Name == "Name" {
			d.Format = "name"
		}
		definitions = append(definitions, d)
	}
	return definitions
}

func (r *Resource) cells(e encoded, o *object) []any {
	if r.printed != nil {
		cells, content := []any{o.meta.Name}, o.content()
		for _, p := range r.printed {
			cells = append(cells, p.cell(content))
		}
		return cells
	}
	if row := r.layout().row; row != nil {
		return row(e.json)
	}
	return []any{o.meta.Name, age(o.meta.CreationTimestamp)}
}

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
	t.ColumnDefinitions = c.resource.columnDefinitions()
	return t
}

var endedPods = map[string]string{
	"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed.",
}

// addRow adds an object. includeObject selects how much of it the row contains.
func (c *call) addRow(t *metav1.Table, e encoded, o *object) {
	row := metav1.TableRow{Cells: c.resource.cells(e, o)}
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

func age(created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}
