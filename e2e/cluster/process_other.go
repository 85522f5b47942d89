// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cluster

import "syscall"

// dieWithParent has no equivalent here: after a killed test binary, end the servers by hand.
func dieWithParent() *syscall.SysProcAttr { return nil }

func lock(string) (unlock func() error, err error) { return func() error { return nil }, nil }
