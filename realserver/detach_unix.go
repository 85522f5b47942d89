// SPDX-License-Identifier: Apache-2.0

//go:build unix

package realserver

import "syscall"

// ofItsOwn keeps a program apart from this terminal: Ctrl-C here does not end it.
func ofItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
