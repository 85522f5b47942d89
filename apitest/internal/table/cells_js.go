// SPDX-License-Identifier: Apache-2.0

package table

// A program in a browser has no tables of built-in kinds: their Go types are too large for it.
var layouts map[string]Layout
