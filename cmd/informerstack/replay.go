// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/health"
)

const replayHelp = `
replay shows a run again that "informerstack run --record FILE" has recorded, or a program that
"informerstack devtools URL --record FILE" has, in the browser and with a time slider. With --html
it writes the end of a recorded run as one file, which can be published and needs neither this
program nor a network.`

func newReplayCommand() *cobra.Command {
	var listen, html string
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Show a recorded run or program in the browser",
		Long:  strings.TrimSpace(replayHelp),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fail(exitUsage,
					"replay: want one recording (see informerstack replay --help)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if html != "" && listen != "" {
				return fail(exitUsage, "--listen has no effect with --html")
			}
			if html != "" {
				return convert(args[0], html, cmd.ErrOrStderr())
			}
			return replay(cmd.Context(), args[0], listen, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "",
		"serve on this loopback `address` (default: any free port)")
	cmd.Flags().StringVar(&html, "html", "",
		"write the recording to this `file` as one HTML page, and serve nothing")
	return cmd
}

// replay serves a recording until ctx is done.
func replay(ctx context.Context, path, listen string, stderr io.Writer) error {
	if listen != "" {
		if err := checkListen("listen", listen); err != nil {
			return err
		}
	}
	recording, page, closePage, err := openRecording(path)
	if err != nil {
		return fail(exitUsage, "replay: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", cmp.Or(listen, anyPort))
	if err != nil {
		return listenError("listen", err)
	}
	server := &http.Server{Handler: recording, ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() {
		closePage()
		_ = server.Close()
	})()
	fmt.Fprintf(stderr, "Open http://%s%s to see the recording. Ctrl-C stops.\n", listener.Addr(),
		page)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fail(exitFailed, "serve recording: %w", err)
	}
	return nil
}

// openRecording returns what serves a recording, the path of its page, and a function that ends the
// page's streams.
func openRecording(path string) (serve http.Handler, page string, end func(), err error) {
	frames, ofDevtools, err := readRing(path)
	if err != nil {
		return nil, "", nil, err
	}
	if ofDevtools {
		return health.NewReplay(frames), informersPage, func() {}, nil
	}
	recording, err := lab.NewReplay(path)
	if err != nil {
		return nil, "", nil, err
	}
	return recording, "/", recording.Close, nil
}

// convert writes the end of a recording as one HTML file.
func convert(path, html string, stderr io.Writer) error {
	if _, ofDevtools, _ := readRing(path); ofDevtools {
		return fail(exitUsage, "--html: %s is a recording of devtools: see it without --html", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return fail(exitUsage, "replay: %w", err)
	}
	defer file.Close()
	var clip lab.Clip
	if _, err := clip.ReadFrom(file); err != nil {
		return fail(exitUsage, "read recording %s: %w", path, err)
	}
	return writeHTML(&clip, html, stderr)
}

func writeHTML(clip *lab.Clip, path string, stderr io.Writer) error {
	file, err := os.Create(path)
	if err != nil {
		return fail(exitUsage, "--html: %w", err)
	}
	err = clip.WriteHTML(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return fail(exitFailed, "--html: write %s: %w", path, err)
	}
	fmt.Fprintf(stderr, "Wrote %s.\n", printable.Text(path))
	return nil
}

// checkWritable opens a file that is written at the end of a run, so that a wrong path is reported
// at its start.
func checkWritable(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return file.Close()
}

// record records the run as --record and --html ask for, until stop is called.
func (p *page) record(o *options, stderr io.Writer) (stop func() error, err error) {
	if o.record == "" && o.html == "" {
		return func() error { return nil }, nil
	}
	var clip lab.Clip
	file := io.Discard
	closeFile := func() error { return nil }
	if o.record != "" {
		created, err := os.Create(o.record)
		if err != nil {
			return nil, fail(exitUsage, "--record: %w", err)
		}
		file, closeFile = created, created.Close
	}
	to := file
	if o.html != "" {
		if err := checkWritable(o.html); err != nil {
			return nil, fail(exitUsage, "--html: %w", err)
		}
		to = io.MultiWriter(file, &clip)
	}
	stopRecording := p.lab.Record(to)
	return func() error {
		if err := errors.Join(stopRecording(), closeFile()); err != nil {
			return fail(exitFailed, "--record: %w", err)
		}
		if o.html != "" {
			return writeHTML(&clip, o.html, stderr)
		}
		return nil
	}, nil
}
