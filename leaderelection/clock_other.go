// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package leaderelection

import "time"

// suspendedTime is not known here: the monotonic clock must do.
func suspendedTime() time.Duration { return 0 }
