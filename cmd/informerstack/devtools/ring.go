// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/health"
)

const (
	// framePeriod is the time between two frames of a recording, savePeriod that between two writes
	// of its file.
	framePeriod = 2 * time.Second
	savePeriod  = 10 * time.Second
	// maxRingBytes bounds a recording.
	maxRingBytes = 64 << 20
	// silentProgram ends a recording: the program has ended.
	silentProgram = 30 * time.Second
)

// ringHead is the first line of a recording's file. The others are health.Pages.
const ringHead = `{"recording":"informerstack devtools","version":1}` + "\n"

// ring holds the last frames of a recording, as lines.
//
//	R1  the frames are younger than last, except the newest one
//	R2  they have at most maxRingBytes, except the newest one
type ring struct {
	last   time.Duration
	frames []framed
	bytes  int
}

type framed struct {
	at   time.Time
	line []byte
}

func (r *ring) add(at time.Time, line []byte) {
	r.frames = append(r.frames, framed{at, line})
	r.bytes += len(line)
	for len(r.frames) > 1 &&
		(r.bytes > maxRingBytes || at.Sub(r.frames[0].at) > r.last) {
		r.bytes -= len(r.frames[0].line)
		r.frames = r.frames[1:]
	}
}

// save replaces the file at path, whole or not at all.
func (r *ring) save(path string) error {
	content := make([]byte, 0, len(ringHead)+r.bytes)
	content = append(content, ringHead...)
	for _, f := range r.frames {
		content = append(content, f.line...)
	}
	return cli.ReplaceFile(path, content)
}

// recordProgram keeps the last pages of a program in a file, until ctx is done or the program no
// longer answers.
func recordProgram(
	ctx context.Context, asked *url.URL, path string, last time.Duration, stderr io.Writer,
) error {
	r := &ring{last: last}
	now := time.Now()
	if err := r.frame(ctx, asked, now); err != nil {
		return err
	}
	if err := r.save(path); err != nil {
		return cli.Fail(cli.Usage, "--record: %w", err)
	}
	fmt.Fprintf(stderr, "Recording the last %s to %s. Ctrl-C stops.\n", last, printable.Text(path))
	answered, saved := now, now
	ticker := time.NewTicker(framePeriod)
	defer ticker.Stop()
	for ctx.Err() == nil && now.Sub(answered) < silentProgram {
		select {
		case now = <-ticker.C:
			if r.frame(ctx, asked, now) == nil {
				answered = now
			}
		case <-ctx.Done():
		}
		if now.Sub(saved) >= savePeriod {
			saved = now
			if err := r.save(path); err != nil {
				return cli.Fail(cli.Failed, "--record: %w", err)
			}
		}
	}
	if ctx.Err() == nil {
		fmt.Fprintf(stderr, "The program has not answered for %s.\n", silentProgram)
	}
	if err := r.save(path); err != nil {
		return cli.Fail(cli.Failed, "--record: %w", err)
	}
	fmt.Fprintf(stderr, "Wrote %s; see it with: informerstack replay %[1]s\n", printable.Text(path))
	return nil
}

// frame adds the present page of the program.
func (r *ring) frame(ctx context.Context, asked *url.URL, now time.Time) error {
	text, err := askProgram(ctx, asked)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return cli.Fail(cli.Failed, "devtools: %s does not answer with JSON: %w", asked.Host, err)
	}
	if err := json.Unmarshal(line.Bytes(), &health.Page{}); err != nil { // as ReadRecording does
		return cli.Fail(cli.Failed, "devtools: %s does not answer with a page: %w", asked.Host, err)
	}
	line.WriteByte('\n')
	r.add(now, line.Bytes())
	return nil
}

// ReadRecording reads the frames of a file. ok is false if it is not a recording of devtools.
func ReadRecording(path string) (frames []health.Page, ok bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxPage+1)
	if !lines.Scan() || lines.Text()+"\n" != ringHead {
		return nil, false, nil
	}
	for lines.Scan() {
		var page health.Page
		if err := json.Unmarshal(lines.Bytes(), &page); err != nil {
			return nil, true, fmt.Errorf("%s: line %d: %w", path, len(frames)+2, err)
		}
		frames = append(frames, page)
	}
	if err := lines.Err(); err != nil {
		return nil, true, fmt.Errorf("%s: line %d: %w", path, len(frames)+2, err)
	}
	if len(frames) == 0 {
		return nil, true, fmt.Errorf("%s has no frames", path)
	}
	return frames, true, nil
}
