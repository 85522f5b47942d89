// SPDX-License-Identifier: Apache-2.0

package devtools

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

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/internal/helpers/printable"
)

// InformersPage is the path of the page that is asked.
const InformersPage = "/debug/informers"

const (
	devtoolsTimeout = 30 * time.Second
	// recordedKeys is the number of keys that a recording has of each list.
	recordedKeys = 1000
	// maxPage bounds what is read of an answer.
	maxPage = 16 << 20
)

// question is what is asked about one key, or one queue; about the whole program if both are "".
type question struct {
	key    string
	stacks bool // see journal.Worker.Stack
	queue  string
	from   int // the number of the first key of queue
}

// check refuses options without an effect. changed reports whether an option was given.
func (q question) check(changed func(option string) bool) error {
	switch {
	case changed("why") && q.key == "":
		return errors.New("--why is empty: want a key, such as namespace/name")
	case q.stacks && q.key == "":
		return errors.New("--stacks has no effect without --why")
	case changed("queue") && q.queue == "":
		return errors.New("--queue is empty: want the name of a queue or a controller")
	case q.queue != "" && q.key != "":
		return errors.New("--queue and --why are two questions")
	case changed("from") && q.queue == "":
		return errors.New("--from has no effect without --queue")
	case q.from < 1:
		return fmt.Errorf("--from %d: want a number from 1 on", q.from)
	}
	return nil
}

// pageURL returns the URL of the page of a program. A scheme may be missing.
func pageURL(text string, about question, format string, recorded bool) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	asked, err := url.Parse(text)
	if err != nil {
		return nil, withoutURL(err)
	}
	if asked.Host != "" && strings.Trim(asked.Host, ".…") == "" {
		return nil, errors.New("the link has dots in place of an address: want the link that the " +
			"program has printed, such as http://127.0.0.1:9000/TOKEN/debug/informers")
	}
	if asked.Host == "" || asked.Scheme != "http" && asked.Scheme != "https" {
		return nil, errors.New("want a link such as http://127.0.0.1:8080")
	}
	if !strings.HasSuffix(asked.Path, InformersPage) {
		asked = asked.JoinPath(InformersPage)
	}
	query := asked.Query()
	query.Set("format", format)
	if about.key != "" {
		query.Set("why", about.key)
	}
	if about.stacks {
		query.Set("stacks", "1")
	}
	if about.queue != "" {
		query.Set("queue", about.queue)
		query.Set("from", strconv.Itoa(about.from))
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
		return nil, cli.Fail(cli.Usage, "devtools: %w", err)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	response, err := client.Do(request)
	if err != nil {
		return nil, cli.Fail(cli.Unreachable, "devtools: %s: %w", asked.Host, withoutURL(err))
	}
	defer response.Body.Close()
	page, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	switch {
	case err != nil:
		return nil, cli.Fail(cli.Unreachable, "devtools: %s: %w", asked.Host, err)
	case response.StatusCode == http.StatusNotFound:
		return nil, cli.Fail(cli.Failed, "devtools: %s answers %s: no devtools are served at this "+
			"address, or the link is not complete", asked.Host, response.Status)
	case response.StatusCode != http.StatusOK:
		return nil, cli.Fail(cli.Failed, "devtools: %s answers %s: %s", asked.Host, response.Status,
			printable.Text(strings.TrimSpace(string(page))))
	case len(page) > maxPage:
		return nil, cli.Fail(cli.Failed, "devtools: %s answers with more than %d MiB", asked.Host,
			maxPage>>20)
	}
	return page, nil
}

// withoutURL returns the error in an error of a URL, which may have a token.
func withoutURL(err error) error {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		return inner.Err
	}
	return err
}
