// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// frameFact is a fact about the value at a path of a frame. The fields that are set must all hold.
type frameFact struct {
	Path string `json:"path"` // see valueAt

	Is  json.RawMessage `json:"is"`  // it is this value; null means no value
	As  string          `json:"as"`  // it is equal to the value at this path
	Min *float64        `json:"min"` // it is a number that is not less
	Max *float64        `json:"max"` // it is a number that is not greater
	// Now compares it with the frame at the beginning of the step: "same", "other", or "more" for a
	// number that has grown.
	Now string `json:"now"`
}

// check returns an error if the frame does not have the fact.
func (f frameFact) check(frame, before any) error {
	got := valueAt(frame, f.Path)
	differs := func(want any) error {
		return fmt.Errorf("%s of the frame is %v, not %v", f.Path, got, want)
	}
	if f.Is != nil {
		var want any
		if err := json.Unmarshal(f.Is, &want); err != nil {
			return err
		}
		if !reflect.DeepEqual(got, want) {
			return differs(want)
		}
	}
	if want := valueAt(frame, f.As); f.As != "" && !reflect.DeepEqual(got, want) {
		return differs(want)
	}
	number, isNumber := numberOf(got)
	if f.Min != nil && !(isNumber && number >= *f.Min) {
		return differs(fmt.Sprintf("%v or more", *f.Min))
	}
	if f.Max != nil && !(isNumber && number <= *f.Max) {
		return differs(fmt.Sprintf("%v or less", *f.Max))
	}
	return f.compare(got, valueAt(before, f.Path))
}

// compare checks Now.
func (f frameFact) compare(got, old any) error {
	same := reflect.DeepEqual(got, old)
	number, _ := numberOf(got)
	oldNumber, _ := numberOf(old)
	switch {
	case f.Now == "same" && !same, f.Now == "other" && same, f.Now == "more" && number <= oldNumber:
		return fmt.Errorf("%s of the frame is %v after %v: want %s", f.Path, got, old, f.Now)
	}
	return nil
}

// numberOf returns a number, or the number that a text such as a resourceVersion holds.
func numberOf(value any) (float64, bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case string:
		number, err := strconv.ParseFloat(value, 64)
		return number, err == nil
	}
	return 0, false
}

// valueAt returns the value at a path, or nil without a value. The path has the names of fields,
// with dots between them. In a list, a name is the index of an element, its key, its name, or the
// element itself; "length" is the number of elements.
func valueAt(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[name]
		case []any:
			value = element(inner, name)
		default:
			return nil
		}
	}
	return value
}

func element(list []any, name string) any {
	if name == "length" {
		return float64(len(list))
	}
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(list) {
			return nil
		}
		return list[i]
	}
	for _, value := range list {
		fields, _ := value.(map[string]any)
		if value == name || fields["key"] == name || fields["name"] == name {
			return value
		}
	}
	return nil
}

// asJSON returns the value that a reader of the frame's JSON gets.
func asJSON(f Frame) any {
	encoded, err := json.Marshal(f)
	if err != nil {
		return nil
	}
	var decoded any
	_ = json.Unmarshal(encoded, &decoded)
	return decoded
}
