// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// While the compiler runs, the number of packages is reported. Its messages are not.
func TestBuildOutput_ReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		built := &buildOutput{log: &log, start: time.Now(), reported: time.Now()}
		for _, part := range []string{"k8s.io/api/", "core/v1\nk8s.io/client-go/rest\n",
			"# example.org/broken\n", "./a.go:1:2: undefined: x\n\n"} {
			time.Sleep(buildPeriod/2 + time.Millisecond)
			_, _ = built.Write([]byte(part))
		}
		assert.Equal(t, "  2 packages so far, 5s\n  2 packages so far, 10s\n", log.String())
		assert.Equal(t, "# example.org/broken\n./a.go:1:2: undefined: x\n",
			built.messages.String())
	})
}
