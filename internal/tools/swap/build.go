// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// buildPeriod is the time between two reports of a build.
const buildPeriod = 5 * time.Second

// goBuild compiles packages in dir with a go.work, and reports to log how many are compiled while
// it lasts. The error contains the messages of the compiler.
func goBuild(ctx context.Context, dir, goWork string, log io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-v"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK="+goWork)
	built := &buildOutput{log: log, start: time.Now(), reported: time.Now()}
	cmd.Stderr = built
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if message := strings.TrimSpace(built.messages.String()); message != "" {
		err = errors.New(message)
	}
	return fmt.Errorf("go %s in %s: %w", strings.Join(cmd.Args[1:], " "), dir, err)
}

// buildOutput takes what go build -v writes to standard error: a line with the path of each package
// that it compiles, which are counted and reported to log, and messages.
type buildOutput struct {
	log             io.Writer
	start, reported time.Time
	line            []byte // the last one, so far
	packages        int
	messages        strings.Builder
}

// Write takes a part of the output.
func (b *buildOutput) Write(part []byte) (int, error) {
	b.line = append(b.line, part...)
	for end := bytes.IndexByte(b.line, '\n'); end >= 0; end = bytes.IndexByte(b.line, '\n') {
		line := b.line[:end+1]
		if bytes.ContainsAny(line, " \t") {
			b.messages.Write(line)
		} else if end > 0 {
			b.packages++
		}
		b.line = b.line[end+1:]
	}
	if time.Since(b.reported) >= buildPeriod {
		b.reported = time.Now()
		fmt.Fprintf(b.log, "  %d packages so far, %v\n", b.packages,
			time.Since(b.start).Round(time.Second))
	}
	return len(part), nil
}
