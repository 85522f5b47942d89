// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package run

// endInBackground does nothing: no terminal stops a program here.
func endInBackground() {}
