// SPDX-License-Identifier: Apache-2.0

// Package replay shows a recorded run or program again, in the browser or as one HTML page.
//
//	file of run --record or devtools --record -> [replay] -> browser
//
// Read replay.go; then go test -v ./cmd/informerstack/replay. Goroutines: those of the HTTP server,
// which ends with the command. Locking: none.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/devtools"
	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/internal/helpers/linktoken"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/observe/health"
)

const replayHelp = `
replay shows a run again that "informerstack run --record FILE" has recorded, or a program that
"informerstack devtools --record FILE" has, in the browser and with a time slider. With --html it
writes the end of a recorded run as one file, which can be published and needs neither this
program nor a network.`

// NewCommand returns the command informerstack replay.
func NewCommand() *cobra.Command {
	var listen, html string
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Show a recorded run or program in the browser",
		Long:  strings.TrimSpace(replayHelp),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Fail(cli.Usage,
					"replay: want one recording (see informerstack replay --help)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if html != "" && listen != "" {
				return cli.Fail(cli.Usage, "--listen has no effect with --html")
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
		if err := cli.CheckListen("listen", listen); err != nil {
			return err
		}
	}
	recording, page, closePage, err := openRecording(path)
	if err != nil {
		return cli.Fail(cli.Usage, "replay: %w", err)
	}
	listener, err := cli.Listen(ctx, listen)
	if err != nil {
		return err
	}
	token := linktoken.New()
	server := cli.Server(linktoken.Handler(token, recording, http.HandlerFunc(linktoken.Refuse)))
	defer context.AfterFunc(ctx, func() {
		closePage()
		_ = server.Close()
	})()
	fmt.Fprintf(stderr, "Open http://%s/%s%s to see the recording. Ctrl-C stops.\n",
		listener.Addr(), token, page)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return cli.Fail(cli.Failed, "serve recording: %w", err)
	}
	return nil
}

// openRecording returns what serves a recording, the path of its page, and a function that ends the
// page's streams.
func openRecording(path string) (serve http.Handler, page string, end func(), err error) {
	frames, ofDevtools, err := devtools.ReadRecording(path)
	if err != nil {
		return nil, "", nil, err
	}
	if ofDevtools {
		return health.NewReplay(frames), devtools.InformersPage, func() {}, nil
	}
	recording, err := lab.NewReplay(path)
	if err != nil {
		return nil, "", nil, err
	}
	return recording, "/", recording.Close, nil
}

// convert writes the end of a recording as one HTML file.
func convert(path, html string, stderr io.Writer) error {
	if _, ofDevtools, _ := devtools.ReadRecording(path); ofDevtools {
		return cli.Fail(cli.Usage, "--html: %s is a recording of devtools: see it without --html",
			path)
	}
	file, err := os.Open(path)
	if err != nil {
		return cli.Fail(cli.Usage, "replay: %w", err)
	}
	defer file.Close()
	var clip lab.Clip
	if _, err := clip.ReadFrom(file); err != nil {
		return cli.Fail(cli.Usage, "read recording %s: %w", path, err)
	}
	return WriteHTML(&clip, html, stderr)
}

// WriteHTML writes a clip as one HTML page to a file, and reports that to stderr. path is the value
// of --html, which its errors name.
func WriteHTML(clip *lab.Clip, path string, stderr io.Writer) error {
	file, err := os.Create(path)
	if err != nil {
		return cli.Fail(cli.Usage, "--html: %w", err)
	}
	err = clip.WriteHTML(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return cli.Fail(cli.Failed, "--html: write %s: %w", path, err)
	}
	fmt.Fprintf(stderr, "Wrote %s.\n", printable.Text(path))
	return nil
}
