// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
)

// Column is a column of a custom kind, as its definition has it.
type Column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int32  `json:"priority"`
	JSONPath    string `json:"jsonPath"`
}

// Age is the column of a custom kind if its definition names no columns.
var Age = Column{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"}

func (p *Column) definition() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{
		Name: p.Name, Type: p.Type, Format: p.Format, Priority: p.Priority,
		Description: cmp.Or(p.Description,
			"Custom resource definition column (in JSONPath format): "+p.JSONPath),
	}
}

// Check reports a JSONPath that cannot be read.
func (p *Column) Check() error {
	_, err := p.parse()
	return err
}

func (p *Column) parse() (*jsonpath.JSONPath, error) {
	path := jsonpath.New(p.Name).AllowMissingKeys(true)
	return path, path.Parse("{" + p.JSONPath + "}")
}

// cell returns what the column shows of an object: nil if that has no value of the column's type.
func (p *Column) cell(content map[string]any) any {
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
