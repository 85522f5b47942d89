// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/informerstack/internal/helpers/printable"
)

const devtoolsHelp = `
devtools asks a running program for its informers, queues, controllers and elections, or why one
key is not being reconciled. The program is one of these:

  informerstack swap --devtools ADDRESS    any program on client-go; it prints its URL
  compat/devtools.Handler                  a program that imports this stack's client-go names
  observe/health.Handler                   a program on this stack, also informerstack run --listen

With --record it keeps what the program shows in a file, each two seconds of the last minutes, until
Ctrl-C: informerstack replay FILE shows it without the program. It holds keys, versions, names of
fields and errors, no other content of objects.

URL is the link that the program printed, or the address of the handler, such as
http://127.0.0.1:8080; then the page debug/informers below it is asked. For a pod, use kubectl
port-forward.`

const devtoolsExamples = `
  informerstack devtools http://127.0.0.1:8080
  informerstack devtools http://127.0.0.1:8080 --why default/settings-1
  informerstack devtools http://127.0.0.1:8080 --record controller.jsonl`

const (
	informersPage   = "/debug/informers"
	devtoolsTimeout = 30 * time.Second
	// recordedKeys is the number of keys that a recording has of each list.
	recordedKeys = 1000
	// maxPage bounds what is read of an answer.
	maxPage = 16 << 20
)

func newDevtoolsCommand() *cobra.Command {
	var key, format, record string
	var last time.Duration
	cmd := &cobra.Command{
		Use:     "devtools URL",
		Short:   "Show the inside of a running program, and why a key is not reconciled",
		Long:    strings.TrimSpace(devtoolsHelp),
		Example: strings.Trim(devtoolsExamples, "\n"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fail(exitUsage, "devtools: want one URL (see informerstack devtools --help)")
			}
			if cmd.Flags().Changed("why") && key == "" {
				return fail(exitUsage, "--why is empty: want a key, such as namespace/name")
			}
			if format != "text" && format != "json" {
				return fail(exitUsage, "--format %q: want text or json", format)
			}
			if record != "" && (key != "" || cmd.Flags().Changed("format")) {
				return fail(exitUsage, "--record takes neither --why nor --format")
			}
			if record == "" && cmd.Flags().Changed("last") {
				return fail(exitUsage, "--last has no effect without --record")
			}
			if last <= 0 {
				return fail(exitUsage, "--last %s: want a positive duration", last)
			}
			if record != "" {
				format = "json"
			}
			asked, err := pageURL(args[0], key, format, record != "")
			if err != nil {
				return fail(exitUsage, "devtools: %w", err)
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
	cmd.Flags().StringVar(&key, "why", "",
		"answer why this `key`, such as namespace/name, is not being reconciled")
	cmd.Flags().StringVar(&format, "format", "text", "`text` or json")
	cmd.Flags().StringVar(&record, "record", "",
		"keep what the program shows in this `file`, for informerstack replay")
	cmd.Flags().DurationVar(&last, "last", 10*time.Minute,
		"with --record: how much of the time before the end is kept")
	return cmd
}

// pageURL returns the URL of the page of a program. A scheme may be missing.
func pageURL(text, key, format string, recorded bool) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	asked, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if asked.Host == "" || asked.Scheme != "http" && asked.Scheme != "https" {
		return nil, fmt.Errorf("%q: want a URL such as http://127.0.0.1:8080", text)
	}
	if !strings.HasSuffix(asked.Path, informersPage) {
		asked = asked.JoinPath(informersPage)
	}
	query := asked.Query()
	query.Set("format", format)
	if key != "" {
		query.Set("why", key)
	}
	if recorded {
		query.Set("limit", strconv.Itoa(recordedKeys))
	}
	asked.RawQuery = query.Encode()
	return asked, nil
}

// askProgram returns the answer of a program. A redirection is no answer: it could lead elsewhere.
func askProgram(ctx context.Context, asked *url.URL) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, devtoolsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asked.String(), http.NoBody)
	if err != nil {
		return nil, fail(exitUsage, "devtools: %w", err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // the URL has the token
		}
		return nil, fail(exitUnreachable, "devtools: %s: %w", asked.Host, err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	switch {
	case err != nil:
		return nil, fail(exitUnreachable, "devtools: %s: %w", asked.Host, err)
	case response.StatusCode != http.StatusOK:
		return nil, fail(exitFailed, "devtools: %s answers %s: %s", asked.Host, response.Status,
			printable.Text(strings.TrimSpace(string(page))))
	case len(page) > maxPage:
		return nil, fail(exitFailed, "devtools: %s answers with more than %d MiB", asked.Host,
			maxPage>>20)
	}
	return page, nil
}
