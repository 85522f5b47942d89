// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"os"

	"example.com/informerstack/reflector/outage"
)

// outageVariable is an environment variable. With the value group, all informers and reflectors of
// the program are in one outage.Group; otherwise they wait as client-go's. It is read when a
// reflector starts. It is for programs that use one API server, because a ListerWatcher does not
// say which server it asks.
const outageVariable = "INFORMERSTACK_OUTAGE"

var programGroup outage.Group

// outageGroup returns the Group of a reflector that starts, or nil.
func outageGroup() *outage.Group {
	if os.Getenv(outageVariable) == "group" {
		return &programGroup
	}
	return nil
}
