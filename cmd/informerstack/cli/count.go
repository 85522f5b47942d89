// SPDX-License-Identifier: Apache-2.0

package cli

import "strconv"

// Count returns a number and a noun in the plural, unless there is one.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(n) + " " + noun
}

// thousands returns a number with a comma before each group of three digits.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
