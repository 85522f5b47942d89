// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/transcript"
)

// The transcripts are requests and answers on the wire, in a bubble with its own clock.
//
//	METHOD PATH [-H Name=value]... [BODY]  one request; $continue is the last list's token
//	watch ID PATH [-H Name=value]...       opens a watch; its events are printed as they arrive
//	sleep DURATION                         lets time pass
//	compact, lag, catch-up                 faults of the server
//	close|cut|stall|expire                 faults of every open watch
//	fail N VERB CODE                       the next N requests of the verb get the status
//	requests                               the requests since the last such line
func TestTranscripts(t *testing.T) {
	for _, file := range transcript.Glob(t, "../testdata/apitest/*.txt") {
		t.Run(file.Name, func(t *testing.T) {
			bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
				require.NoError(t, s.Register(apitest.Resource{
					Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets",
					Namespaced: true, Status: true,
				}))
				w := &wire{t: t, server: s, client: s.Client()}
				file.Play(t, transcript.Ours, w.exec)
				w.stop()
			})
		})
	}
}

// wire plays a transcript.
type wire struct {
	t       *testing.T
	server  *apitest.Server
	client  *http.Client
	token   string
	catchUp func()
	cancels []context.CancelFunc

	mu     sync.Mutex
	events []string
}

func (w *wire) exec(cmd transcript.Command) string {
	out := w.do(cmd)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.events
	w.events = nil
	slices.SortStableFunc(lines, func(a, b string) int { // the order among watches is not defined
		idA, _, _ := strings.Cut(a, " ")
		idB, _, _ := strings.Cut(b, " ")
		return strings.Compare(idA, idB)
	})
	if out != "" {
		lines = append([]string{out}, lines...)
	}
	return strings.Join(lines, "\n")
}

func (w *wire) do(cmd transcript.Command) string {
	faults := w.server.Faults()
	switch cmd.Name {
	case "GET", "POST", "PUT", "PATCH", "DELETE":
		return w.request(cmd)
	case "watch":
		w.watch(cmd)
	case "sleep":
		d, err := time.ParseDuration(cmd.Arg(0))
		require.NoError(w.t, err)
		time.Sleep(d)
	case "compact":
		faults.Compact()
	case "lag":
		w.catchUp = faults.Lag()
	case "catch-up":
		w.catchUp()
	case "close":
		faults.Break(apitest.Match{}, apitest.CloseStream)
	case "cut":
		faults.Break(apitest.Match{}, apitest.CutStream)
	case "stall":
		faults.Break(apitest.Match{}, apitest.StallStream)
	case "expire":
		faults.Break(apitest.Match{}, apitest.ErrorStream)
	case "fail":
		n, err := strconv.Atoi(cmd.Arg(0))
		require.NoError(w.t, err)
		faults.Fail(n, apitest.Match{Verb: cmd.Arg(1)}, map[string]error{
			"429": apierrors.NewTooManyRequests("slow down", 7),
			"500": apierrors.NewInternalError(io.ErrUnexpectedEOF),
			"503": apierrors.NewServiceUnavailable("not now"),
			"410": apierrors.NewResourceExpired("too old"),
		}[cmd.Arg(2)])
	case "requests":
		return w.requests()
	default:
		require.Fail(w.t, "unknown command", cmd.Line)
	}
	return ""
}

var (
	uidPattern = regexp.MustCompile(
		`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	tokenPattern = regexp.MustCompile(`"continue":"([^"]+)"`)
)

// newRequest reads a request from a command line.
func (w *wire) newRequest(ctx context.Context, method, rest string) *http.Request {
	head, body := rest, ""
	if i := strings.IndexAny(rest, "{["); i >= 0 {
		head, body = rest[:i], rest[i:]
	}
	words := strings.Fields(head)
	if body == "" && len(words) > 1 && words[len(words)-2] != "-H" {
		words, body = words[:len(words)-1], words[len(words)-1]
	}
	if n, ok := strings.CutPrefix(body, "bytes:"); ok { // a body of that many bytes
		size, err := strconv.Atoi(n)
		require.NoError(w.t, err)
		body = strings.Repeat("x", size)
	}
	path := strings.ReplaceAll(words[0], "$continue", w.token)
	req, err := http.NewRequestWithContext(ctx, method, w.server.URL+path, strings.NewReader(body))
	require.NoError(w.t, err)
	for i := 1; i+1 < len(words); i += 2 {
		name, value, _ := strings.Cut(words[i+1], "=")
		req.Header.Set(name, value)
	}
	return req
}

func (w *wire) request(cmd transcript.Command) string {
	req := w.newRequest(w.t.Context(), cmd.Name, strings.TrimPrefix(cmd.Line, cmd.Name))
	resp, err := w.client.Do(req)
	if err != nil {
		return "error: " + err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	out := []string{strconv.Itoa(resp.StatusCode)}
	if after := resp.Header.Get("Retry-After"); after != "" {
		out[0] += " Retry-After: " + after
	}
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		out[0] += " " + kind
	}
	if m := tokenPattern.FindSubmatch(body); m != nil {
		w.token = string(m[1])
	}
	return strings.Join(append(out, mask(string(body))), "\n")
}

// mask hides the values that differ between runs.
func mask(body string) string {
	body = uidPattern.ReplaceAllString(body, "UID")
	body = tokenPattern.ReplaceAllString(body, `"continue":"TOKEN"`)
	return strings.TrimRight(body, "\n")
}

func (w *wire) watch(cmd transcript.Command) {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.cancels = append(w.cancels, cancel)
	id := cmd.Arg(0)
	req := w.newRequest(ctx, http.MethodGet, strings.TrimPrefix(cmd.Line, "watch "+id))
	go func() {
		resp, err := w.client.Do(req)
		if err != nil {
			w.note(id, "error: "+err.Error())
			return
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(resp.Body)
			w.note(id, fmt.Sprintf("%d %s", resp.StatusCode, mask(string(body))))
			return
		}
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				w.note(id, mask(line))
			}
			if err != nil {
				if ctx.Err() == nil {
					w.note(id, "end: "+err.Error())
				}
				return
			}
		}
	}()
}

func (w *wire) note(id, line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, id+" "+line)
}

func (w *wire) requests() string {
	var lines []string
	for _, r := range w.server.Requests(apitest.Match{}) {
		line := fmt.Sprintf("%s %s", r.Verb, r.Path)
		if q := r.Query.Encode(); q != "" {
			line += "?" + q
		}
		lines = append(lines, fmt.Sprintf("%s %d", line, r.Code))
	}
	w.server.ForgetRequests()
	return strings.Join(lines, "\n")
}

func (w *wire) stop() {
	for _, cancel := range w.cancels {
		cancel()
	}
	synctest.Wait()
}
