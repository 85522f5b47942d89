// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// built returns what a build reports that has this output, a part every six seconds.
func built(t *testing.T, width int, output ...string) (log, messages string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		var text strings.Builder
		b := &buildOutput{to: reports{&text, width}, start: time.Now()}
		end := b.keepReporting()
		for _, part := range output {
			_, _ = b.Write([]byte(part))
			time.Sleep(6 * time.Second)
		}
		end()
		log, messages = text.String(), b.messages.String()
	})
	return log, messages
}

// A build reports the number of packages and the latest one, even while the compiler
// writes nothing. The compiler's messages are not in the report.
func TestBuildOutput_ReportsProgress(t *testing.T) {
	log, messages := built(t, 0, "k8s.io/api/", "core/v1\nk8s.io/client-go/rest\n", "",
		"# example.org/broken\n", "./a.go:1:2: undefined: x\n\n")
	assert.Equal(t, "  packages compiled after 10s: 2, now k8s.io/client-go/rest\n"+
		"  packages compiled after 20s: 2, now k8s.io/client-go/rest\n"+
		"  packages compiled after 30s: 2, now k8s.io/client-go/rest\n"+
		"  packages compiled in 30s: 2\n", log)
	assert.Equal(t, "# example.org/broken\n./a.go:1:2: undefined: x\n", messages)
}

// A terminal has one line, which changes, and is no longer than the terminal is wide.
func TestBuildOutput_ReportsOnOneLineOfATerminal(t *testing.T) {
	log, _ := built(t, 40, "k8s.io/api/core/v1\n")
	line, rest, _ := strings.Cut(strings.TrimPrefix(log, clearLine), clearLine)
	assert.Equal(t, "  packages compiled after 1s: 1, now k8", line)
	assert.Equal(t, 1, strings.Count(rest, "\n"))
	assert.True(t, strings.HasSuffix(rest, clearLine+"  packages compiled in 6s: 1\n"), rest)
}

// A second swap compiles nothing, and says nothing about it.
func TestBuildOutput_ReportsNothingOfNothing(t *testing.T) {
	log, _ := built(t, 0, "", "", "")
	assert.Empty(t, log)
}
