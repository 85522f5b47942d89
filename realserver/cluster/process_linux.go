// SPDX-License-Identifier: Apache-2.0

package cluster

import "syscall"

// ofThisProcess makes the kernel kill a program when this process ends, and keeps Ctrl-C in a
// terminal from it: this process ends it when nothing needs it any more.
func ofThisProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
