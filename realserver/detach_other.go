// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package realserver

import "syscall"

func ofItsOwn() *syscall.SysProcAttr { return nil }
