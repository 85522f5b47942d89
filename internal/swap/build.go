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
	"sync"
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
	built := &buildOutput{}
	cmd.Stderr = built
	ended, reporting := make(chan struct{}), sync.WaitGroup{}
	reporting.Go(func() { built.report(log, ended) })
	err := cmd.Run()
	close(ended)
	reporting.Wait()
	if err == nil {
		return nil
	}
	if message := built.messages(); message != "" {
		err = errors.New(message)
	}
	return fmt.Errorf("go %s in %s: %w", strings.Join(cmd.Args[1:], " "), dir, err)
}

// buildOutput is what go build -v writes to standard error: a line with the path of each package
// that it compiles, and messages.
type buildOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes a part of the output.
func (b *buildOutput) Write(part []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(part)
}

// split returns the number of packages, and the messages.
func (b *buildOutput) split() (packages int, messages string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rest []string
	for line := range strings.Lines(b.text.String()) {
		switch {
		case strings.ContainsAny(line, " \t"):
			rest = append(rest, line)
		case line != "\n":
			packages++
		}
	}
	return packages, strings.TrimSpace(strings.Join(rest, ""))
}

func (b *buildOutput) messages() string {
	_, messages := b.split()
	return messages
}

// report writes the progress until ended is closed.
func (b *buildOutput) report(log io.Writer, ended <-chan struct{}) {
	start := time.Now()
	ticker := time.NewTicker(buildPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			packages, _ := b.split()
			fmt.Fprintf(log, "  %d packages so far, %v\n", packages,
				time.Since(start).Round(time.Second))
		}
	}
}
