// SPDX-License-Identifier: Apache-2.0

//go:build unix

package run

import (
	"os/signal"
	"syscall"
)

// endInBackground makes reading the terminal fail for a program in the background, as after
// "informerstack run &". Otherwise the terminal would stop the program.
func endInBackground() { signal.Ignore(syscall.SIGTTIN) }
