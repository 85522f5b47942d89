// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import "syscall"

// dieWithParent has no equivalent here: a killed test binary leaves the servers to be ended by
// hand.
func dieWithParent() *syscall.SysProcAttr { return nil }
