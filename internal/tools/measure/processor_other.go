// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package measure

import "time"

var begin = time.Now()

// ProcessorTime is the time that has passed.
func ProcessorTime() time.Duration { return time.Since(begin) }
