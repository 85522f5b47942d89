// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import "syscall"

// ofThisProcess does nothing here: if this process is killed, its programs must be ended by hand.
func ofThisProcess() *syscall.SysProcAttr { return nil }
