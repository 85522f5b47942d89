// SPDX-License-Identifier: Apache-2.0

// Package table has the columns and cells of the tables that kubectl get prints.
//
// Objects are JSON. Read table.go, columns.go (custom kinds), then cells.go and podcells.go
// (built-in kinds).
//
// There are no goroutines, and no state.
//
// To see it work: go test -run TestApitest ./internal/tools/conformance
package table

import (
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Layout is the table of a kind.
type Layout struct {
	Columns []metav1.TableColumnDefinition
	// Cells returns the values of a row, one for each column.
	Cells func(object []byte) []any
}

// Builtin returns the layout of a built-in kind: of pods. or deployments.apps. A kind without one
// of its own has the columns Name and Age.
func Builtin(kind string) Layout {
	if layout, ok := layouts[kind]; ok {
		return layout
	}
	return plain
}

var plain = typed("Name,Age", func(o *metav1.PartialObjectMetadata) []any {
	return []any{o.Name, age(o.CreationTimestamp)}
})

// Custom returns the layout of a custom kind: the name, and the columns of its definition,
// or Age.
func Custom(columns []Column) Layout {
	if len(columns) == 0 {
		columns = []Column{Age}
	}
	layout := Layout{Columns: definitions("Name")}
	for i := range columns {
		layout.Columns = append(layout.Columns, columns[i].definition())
	}
	layout.Cells = func(object []byte) []any {
		var content map[string]any
		_ = utiljson.Unmarshal(object, &content) // it was encoded here
		metadata, _ := content["metadata"].(map[string]any)
		cells := []any{metadata["name"]}
		for i := range columns {
			cells = append(cells, columns[i].cell(content))
		}
		return cells
	}
	return layout
}

// typed returns the layout of a kind with the Go type T. Values of another type are left out.
func typed[T any](columns string, row func(*T) []any) Layout {
	return Layout{Columns: definitions(columns), Cells: func(object []byte) []any {
		obj := new(T)
		_ = json.Unmarshal(object, obj) // decodes what it can
		return row(obj)
	}}
}

// definitions reads the names of columns, with commas. A + marks those of the wide table, a # those
// of integers.
func definitions(columns string) (all []metav1.TableColumnDefinition) {
	for name := range strings.SplitSeq(columns, ",") {
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
		all = append(all, d)
	}
	return all
}

func age(created metav1.Time) string {
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}
