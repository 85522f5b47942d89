// SPDX-License-Identifier: Apache-2.0

package builtin

import "k8s.io/apimachinery/pkg/util/validation/field"

// A program in a browser has no rules: the Go types of the kinds are too large for it.

// Rules are empty.
type Rules struct{}

// All returns no rules.
func All() map[string]*Rules { return nil }

// Default does nothing.
func (*Rules) Default(map[string]any) {}

// Complete does nothing.
func (*Rules) Complete(_, _ map[string]any) {}

// Validate finds no error.
func (*Rules) Validate(_, _ map[string]any, _ string) field.ErrorList { return nil }
