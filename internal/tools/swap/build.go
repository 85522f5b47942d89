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

// The time between two reports of a build: new lines, or one line of a terminal that changes.
const (
	linePeriod     = 10 * time.Second
	terminalPeriod = 500 * time.Millisecond
)

// goBuild compiles packages in dir with a go.work, and reports while it lasts. The error contains
// the messages of the compiler.
func goBuild(ctx context.Context, dir, goWork string, to reports, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-v"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GOWORK="+goWork)
	built := &buildOutput{to: to, start: time.Now()}
	cmd.Stderr = built
	end := built.keepReporting()
	err := cmd.Run()
	end()
	if err == nil {
		return nil
	}
	if message := strings.TrimSpace(built.messages.String()); message != "" {
		err = errors.New(message)
	}
	return fmt.Errorf("go %s in %s: %w", strings.Join(cmd.Args[1:], " "), dir, err)
}

// reports is where a build reports.
type reports struct {
	log   io.Writer
	width int // of the terminal that log is; 0 means that log is no terminal
}

// buildOutput takes what go build -v writes to standard error: a line with the path of each package
// when its compilation begins, and messages.
type buildOutput struct {
	to    reports
	start time.Time

	mu       sync.Mutex
	line     []byte // the last one, so far
	packages int
	latest   string // the path of the package that began last
	messages strings.Builder
}

// Write takes a part of the output.
func (b *buildOutput) Write(part []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.line = append(b.line, part...)
	for end := bytes.IndexByte(b.line, '\n'); end >= 0; end = bytes.IndexByte(b.line, '\n') {
		line := b.line[:end+1]
		if bytes.ContainsAny(line, " \t") {
			b.messages.Write(line)
		} else if end > 0 {
			b.packages++
			b.latest = string(line[:end])
		}
		b.line = b.line[end+1:]
	}
	return len(part), nil
}

// keepReporting reports periodically until end is called, which reports the whole build. A build
// that compiles nothing is not reported.
func (b *buildOutput) keepReporting() (end func()) {
	period := linePeriod
	if b.to.width > 0 {
		period = terminalPeriod
	}
	stop := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		ticks := time.NewTicker(period)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				b.report()
			case <-stop:
				return
			}
		}
	})
	return func() {
		close(stop)
		reporter.Wait()
		b.reportEnd()
	}
}

// clearLine returns to the beginning of a terminal's line, and empties it.
const clearLine = "\r\x1b[K"

// report writes how many packages were compiled so far, and which one began last.
func (b *buildOutput) report() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.packages == 0 {
		return
	}
	text := fmt.Sprintf("  packages compiled after %v: %d, now %s", b.lasted(), b.packages,
		b.latest)
	if b.to.width == 0 {
		fmt.Fprintln(b.to.log, text)
		return
	}
	if len(text) >= b.to.width {
		text = text[:b.to.width-1] // a longer one could not be cleared
	}
	fmt.Fprint(b.to.log, clearLine+text)
}

// reportEnd replaces the line of a terminal.
func (b *buildOutput) reportEnd() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.packages == 0 {
		return
	}
	if b.to.width > 0 {
		fmt.Fprint(b.to.log, clearLine)
	}
	fmt.Fprintf(b.to.log, "  packages compiled in %v: %d\n", b.lasted(), b.packages)
}

func (b *buildOutput) lasted() time.Duration { return time.Since(b.start).Round(time.Second) }
