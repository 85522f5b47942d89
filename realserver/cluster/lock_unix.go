// SPDX-License-Identifier: Apache-2.0

//go:build unix && !aix && !solaris

package cluster

import (
	"errors"
	"os"
	"syscall"
)

// Lock waits until no other process holds the lock of a file, which it creates, and holds it until
// unlock is called or this process ends.
func Lock(name string) (unlock func(), err error) {
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
	return func() { _ = file.Close() }, nil // the kernel unlocks it even if this fails
}
