// SPDX-License-Identifier: Apache-2.0

// Package devtools shows the inside of another process, and records it.
//
//	program on this stack -> /debug/informers -> [devtools] -> terminal or file
//
// Read link.go, ask.go, ring.go (a recording) and devtools.go; then go test -v
// ./cmd/informerstack/devtools. Goroutines: none. Locking: none.
package devtools

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/internal/helpers/printable"
)

const devtoolsHelp = `
devtools asks a running program for its informers, queues, controllers and elections, or why one
key is not being reconciled. The program is one of these:

  informerstack swap --devtools ADDRESS    any program on client-go; it prints its link
  compat/devtools.Handler                  a program that imports this stack's client-go names
  observe/health.Handler                   a program on this stack, also informerstack run --listen

With --record it keeps what the program shows in a file, each two seconds of the last minutes, until
Ctrl-C: informerstack replay FILE shows it without the program. It holds keys, versions, names of
fields and errors, no other content of objects.

LINK is the link that the program printed, or the address of the handler, such as
http://127.0.0.1:8080; then the page debug/informers below it is asked. For a pod, use kubectl
port-forward. A printed link has a token, and every user of a machine can read the arguments of its
commands: so put the link into the variable ` + LinkVariable + ` and give no argument, or give the
argument -, and the link in the first line of the standard input.`

const devtoolsExamples = `
  export ` + LinkVariable + `=...                # the link that the program has printed
  informerstack devtools --why default/settings-1
  informerstack devtools --queue settings --from 101
  informerstack devtools - <link.txt           # a file with the link
  informerstack devtools http://127.0.0.1:8080 # no token: informerstack run --listen
  informerstack devtools http://127.0.0.1:8080 --record controller.jsonl`

// NewCommand returns the command informerstack devtools.
func NewCommand() *cobra.Command {
	var about question
	var format, record string
	var last time.Duration
	cmd := &cobra.Command{
		Use:     "devtools [LINK | -]",
		Short:   "Show the inside of a running program, and why a key is not reconciled",
		Long:    strings.TrimSpace(devtoolsHelp),
		Example: strings.Trim(devtoolsExamples, "\n"),
		RunE: func(cmd *cobra.Command, args []string) error {
			link, err := linkOf(args, cmd.InOrStdin(), cmd.ErrOrStderr())
			if err != nil {
				return cli.Fail(cli.Usage, "devtools: %w", err)
			}
			if err := about.check(cmd.Flags().Changed); err != nil {
				return cli.Fail(cli.Usage, "%w", err)
			}
			if format != "text" && format != "json" {
				return cli.Fail(cli.Usage, "--format %q: want text or json", format)
			}
			if record != "" && (about != question{from: 1} || cmd.Flags().Changed("format")) {
				return cli.Fail(cli.Usage, "--record takes no --why, --queue or --format")
			}
			if record == "" && cmd.Flags().Changed("last") {
				return cli.Fail(cli.Usage, "--last has no effect without --record")
			}
			if last <= 0 {
				return cli.Fail(cli.Usage, "--last %s: want a positive duration", last)
			}
			if record != "" {
				format = "json"
			}
			asked, err := pageURL(link, about, format, record != "")
			if err != nil {
				return cli.Fail(cli.Usage, "devtools: %w", err)
			}
			if record != "" {
				return recordProgram(cmd.Context(), asked, record, last, cmd.ErrOrStderr())
			}
			page, err := askProgram(cmd.Context(), asked)
			if err != nil {
				return err
			}
			if format == "json" {
				_, err = cmd.OutOrStdout().Write(printable.JSON(page))
				return err
			}
			for line := range strings.Lines(string(page)) {
				fmt.Fprintln(cmd.OutOrStdout(), printable.Line(strings.TrimSuffix(line, "\n")))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&about.key, "why", "",
		"answer why this `key`, such as namespace/name, is not being reconciled")
	cmd.Flags().StringVar(&about.queue, "queue", "",
		"show the keys of the queue or controller with this `name`, 100 of each list")
	cmd.Flags().IntVar(&about.from, "from", 1,
		"with --queue: the `number` of the first key of each list")
	cmd.Flags().BoolVar(&about.stacks, "stacks", false, "with --why: read the stack of a worker "+
		"even if the program has so many goroutines that it stops for long")
	cmd.Flags().StringVar(&format, "format", "text", "`text` or json")
	cmd.Flags().StringVar(&record, "record", "",
		"keep what the program shows in this `file`, for informerstack replay")
	cmd.Flags().DurationVar(&last, "last", 10*time.Minute,
		"with --record: how much of the time before the end is kept")
	return cmd
}
