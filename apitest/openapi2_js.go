// SPDX-License-Identifier: Apache-2.0

package apitest

// A program in a browser has no document of version 2: no kubectl asks it.
func (*call) serveOpenAPI2() bool { return false }
