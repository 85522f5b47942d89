// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"syscall"
)

func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// lock waits until no other process holds the lock of a file, and holds it until unlock, or the end
// of this process.
func lock(name string) (unlock func() error, err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
