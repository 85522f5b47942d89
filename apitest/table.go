// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
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

// printerColumn is a column of a custom kind, as its definition has it.
type printerColumn struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
	JSONPath    string `json:"jsonPath"`
}

// defaultColumns are those of a custom kind whose definition has none.
var defaultColumns = []printerColumn{
	{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
}

func (p *printerColumn) parse() (*jsonpath.JSONPath, error) {
	path := jsonpath.New(p.Name).AllowMissingKeys(true)
	return path, path.Parse("{" + p.JSONPath + "}")
}

// cell returns what the column shows of an object: nil if that has no value of the column's type.
func (p *printerColumn) cell(content map[string]any) any {
	path, err := p.parse()
	if err != nil {
		return nil
	}
	results, err := path.FindResults(content)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	switch p.Type {
	case "string":
		var text strings.Builder
		if path.PrintResults(&text, results[0][:1]) == nil {
			return text.String()
		}
	case "integer", "number":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			if p.Type == "integer" {
				return int64(n)
			}
			return n
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		if text, ok := value.(string); ok {
			var at metav1.Time
			if at.UnmarshalQueryParameter(text) != nil {
				return "<invalid>"
			}
			return age(at)
		}
	}
	return nil
}

const customColumn = "Custom resource definition column (in JSONPath format): "

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
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{
			Name: p.Name, Type: p.Type, Format: p.Format, Priority: p.Priority,
			Description: cmp.Or(p.Description, customColumn+p.JSONPath),
		})
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
