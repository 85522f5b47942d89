// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"reflect"
	"strings"
)

// models are the OpenAPI schemas of Go types, by the names that refer to them. They are derived
// from the types:
//
//	the tag json        name of a field; required without omitempty and omitzero
//	SwaggerDoc          descriptions of the type and its fields
//	OpenAPISchemaType   of a type that is encoded as something else: Time as a string
//
// The types do not say which values a string may have: the schemas have no enums. Nor do they have
// validations, or the keys of lists.
type models struct {
	byName map[string]any
	v2     bool // for a document of version 2, which refers and combines in another way
}

// addType adds the schemas of the type that obj points to, and of all types in its fields. It
// returns the schema of the type.
func (m *models) addType(obj any) map[string]any {
	t := reflect.TypeOf(obj).Elem()
	m.value(t)
	model, _ := m.byName[modelName(obj)].(map[string]any)
	return model
}

// modelName returns the name of the type that obj points to.
func modelName(obj any) string {
	if named, ok := obj.(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	t := reflect.TypeOf(obj).Elem()
	return strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
}

// value returns the schema of a value. That of a struct refers to the struct's own.
func (m *models) value(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return m.value(t.Elem())
	case reflect.Struct:
		name := modelName(reflect.New(t).Interface())
		if _, ok := m.byName[name]; !ok {
			model := map[string]any{}
			m.byName[name] = model // before its fields, which may be of the same type
			m.fill(model, t)
		}
		if m.v2 {
			return map[string]any{"$ref": "#/definitions/" + name}
		}
		ref := map[string]any{"$ref": "#/components/schemas/" + name}
		return map[string]any{"allOf": []any{ref}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "format": "byte"}
		}
		return map[string]any{"type": "array", "items": m.value(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": m.value(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number", "format": "double"}
	case reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Int, reflect.Int32, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		return map[string]any{"type": "integer", "format": "int32"}
	}
	return map[string]any{"type": "object"}
}

// fill describes a struct.
func (m *models) fill(model map[string]any, t reflect.Type) {
	obj := reflect.New(t).Interface()
	if doc := docOf(obj)[""]; doc != "" {
		model["description"] = doc
	}
	if encoded, ok := obj.(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}); ok {
		model["type"] = encoded.OpenAPISchemaType()[0]
		if format := encoded.OpenAPISchemaFormat(); format != "" {
			model["format"] = format
		}
		if either, ok := obj.(interface{ OpenAPIV3OneOfTypes() []string }); ok && !m.v2 {
			var types []any
			for _, name := range either.OpenAPIV3OneOfTypes() {
				types = append(types, map[string]any{"type": name})
			}
			delete(model, "type")
			model["oneOf"] = types
		}
		return
	}
	model["type"] = "object"
	properties, required := map[string]any{}, []string{}
	m.fields(t, properties, &required)
	if len(properties) > 0 {
		model["properties"] = properties
	}
	if len(required) > 0 {
		model["required"] = required
	}
}

// fields describes the fields of a struct, those of inlined structs included.
func (m *models) fields(t reflect.Type, properties map[string]any, required *[]string) {
	docs := docOf(reflect.New(t).Interface())
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" && field.Anonymous:
			m.fields(field.Type, properties, required)
			continue
		case name == "" || name == "-":
			continue
		case !strings.Contains(options, "omit"):
			*required = append(*required, name)
		}
		property := m.value(field.Type)
		if doc := docs[name]; doc != "" {
			property["description"] = doc
		}
		properties[name] = property
	}
}

// docOf returns the descriptions of a type and its fields.
func docOf(obj any) map[string]string {
	if documented, ok := obj.(interface{ SwaggerDoc() map[string]string }); ok {
		return documented.SwaggerDoc()
	}
	return nil
}
