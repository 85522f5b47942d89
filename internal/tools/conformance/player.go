// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/net"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"example.com/informerstack/internal/tools/transcript"
)

// patience bounds the wait for an answer or an event. Only a failing test waits that long.
const patience = 2 * time.Minute

// player executes the commands of one transcript in a separate namespace ($ns):
//
//	METHOD PATH [BODY]    make a request; prints the status code and the normalized body
//	apply PATH BODY       PATCH PATH BODY, with the content type of a server-side apply
//	managers              print the managed fields of the last body, without their times
//	with HEADER VALUE     send a header with the next request or watch
//	set NAME FIELD...     let $NAME be a field of the last body: set next metadata continue
//	hash NAME TEXT        let $NAME be TEXT's hash for a ShardSelector, and $NAMEend the next one
//	watch NAME PATH       open a watch; prints the answer if it is not a stream
//	next NAME N           print the next N events of a watch
//	rest NAME             print its events until the server ends it; repeated bookmarks once
//	close NAME            close it
//	define DEFINITION     create or patch a CustomResourceDefinition, and wait until its versions
//	                      are served as it says; prints an answer that is not 200 or 201
//	warnings              print the warnings of the last answer
//	await CODE PATH       repeat a GET until its answer has the code
//	retry CODE METHOD PATH [BODY]    the same of any request
//	webhook               serve webhooks: $hook is the URL, $ca the certificate (webhook.go)
//	expire                Target.Expire
//
// $NAME in a line stands for a value that was set, $rv1 and so on for the resourceVersion that was
// printed as rv1.
type player struct {
	*normalizer
	t       *testing.T
	target  Target
	client  *http.Client
	line    string      // the command, for messages
	header  http.Header // for the next request
	last    any         // the last body, as received
	warned  []string    // by the last answer
	vars    map[string]string
	watches map[string]*watch
}

func newPlayer(t *testing.T, target Target, client *http.Client, name string) *player {
	ns := name + "-" + utilrand.String(5)
	p := &player{
		normalizer: newNormalizer(t, ns),
		t:          t,
		target:     target,
		client:     client,
		header:     http.Header{},
		vars:       map[string]string{"ns": ns},
		watches:    map[string]*watch{},
	}
	response := p.request(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"`+ns+`"}}`)
	defer response.Body.Close()
	require.Equal(t, http.StatusCreated, response.StatusCode, "create namespace %s", ns)
	return p
}

func (p *player) exec(cmd transcript.Command) string {
	p.line = cmd.Line
	line := p.substitute(cmd.Line)
	words := strings.SplitN(line, " ", 3)
	arg := func(i int) string {
		require.Less(p.t, i, len(words), "too few words: %s", cmd.Line)
		return words[i]
	}
	switch cmd.Name {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return p.do(words[0], arg(1), strings.Join(words[2:], ""))
	case "apply":
		p.header.Set("Content-Type", "application/apply-patch+yaml")
		return p.do(http.MethodPatch, arg(1), arg(2))
	case "managers":
		return p.managers()
	case "with":
		p.header.Set(arg(1), arg(2))
	case "set":
		p.set(arg(1), strings.Fields(arg(2)))
	case "hash":
		p.hash(arg(1), arg(2))
	case "watch":
		return p.openWatch(arg(1), arg(2))
	case "next":
		return p.watch(arg(1)).next(p, cmd.Arg(1))
	case "rest":
		return p.watch(arg(1)).rest(p)
	case "close":
		p.watch(arg(1)).close()
	case "define":
		return p.define(strings.TrimPrefix(line, "define "))
	case "await":
		p.await(arg(1), http.MethodGet, arg(2), "")
	case "retry":
		parts := strings.SplitN(line, " ", 5)
		require.GreaterOrEqual(p.t, len(parts), 4, "too few words: %s", cmd.Line)
		p.await(parts[1], parts[2], parts[3], strings.Join(parts[4:], ""))
	case "webhook":
		p.startWebhook()
	case "warnings":
		return strings.Join(p.warned, "\n")
	case "expire":
		p.target.Expire(p.t)
	default:
		require.Fail(p.t, "unknown command", cmd.Line)
	}
	return ""
}

// do makes one request and prints its answer.
func (p *player) do(method, path, body string) string {
	response := p.request(method, path, body)
	defer response.Body.Close()
	return p.answer(response)
}

func (p *player) request(method, path, body string) *http.Response {
	ctx, cancel := context.WithCancel(p.t.Context())
	p.t.Cleanup(cancel)
	host := strings.TrimSuffix(p.target.Config.Host, "/")
	request, err := http.NewRequestWithContext(ctx, method, host+path, strings.NewReader(body))
	require.NoError(p.t, err)
	request.Header, p.header = p.header, http.Header{}
	if body != "" && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	giveUp := time.AfterFunc(patience, cancel)
	response, err := p.client.Do(request)
	require.NoError(p.t, err)
	giveUp.Stop()
	p.warned = nil
	warnings, _ := net.ParseWarningHeaders(response.Header["Warning"])
	for _, w := range warnings {
		p.warned = append(p.warned, p.cleanString(strings.ReplaceAll(w.Text, p.ns, "ns")))
	}
	return response
}

// define creates or patches a definition, which is deleted when the test ends.
func (p *player) define(body string) string {
	var d struct {
		Metadata struct{ Name string }
		Spec     struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct {
				Name   string
				Served bool
			}
		}
	}
	require.NoError(p.t, json.Unmarshal([]byte(body), &d), p.line)
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	response := p.request(http.MethodPost, path, body)
	if response.StatusCode == http.StatusConflict {
		response.Body.Close()
		p.header.Set("Content-Type", "application/merge-patch+json")
		response = p.request(http.MethodPatch, path+"/"+d.Metadata.Name, body)
	} else if response.StatusCode == http.StatusCreated {
		p.t.Cleanup(func() { p.remove(path + "/" + d.Metadata.Name) })
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return p.answer(response)
	}
	warned := p.warned
	for _, v := range d.Spec.Versions {
		code := http.StatusNotFound
		if v.Served {
			code = http.StatusOK
		}
		p.await(fmt.Sprint(code), http.MethodGet,
			fmt.Sprintf("/apis/%s/%s/%s", d.Spec.Group, v.Name, d.Spec.Names.Plural), "")
	}
	p.warned = warned
	return ""
}

// remove deletes an object when the test has ended.
func (p *player) remove(path string) {
	request, err := http.NewRequest(http.MethodDelete,
		strings.TrimSuffix(p.target.Config.Host, "/")+path, nil)
	require.NoError(p.t, err)
	response, err := p.client.Do(request)
	require.NoError(p.t, err)
	response.Body.Close()
}

// await repeats a request until its answer has the code.
func (p *player) await(code, method, path, body string) {
	header := p.header
	require.Eventually(p.t, func() bool {
		p.header = header.Clone()
		response := p.request(method, path, body)
		defer response.Body.Close()
		return fmt.Sprint(response.StatusCode) == code
	}, patience, 20*time.Millisecond, p.line)
}

// answer prints the code and body of a response that is not a stream.
func (p *player) answer(response *http.Response) string {
	body, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	head := fmt.Sprint(response.StatusCode)
	if after := response.Header.Get("Retry-After"); after != "" {
		head += " Retry-After:" + after
	}
	mediaType, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if mediaType != "application/json" {
		return head + " " + mediaType + " " + strings.TrimSpace(string(body))
	}
	p.last = decode(p.t, body)
	return head + " " + p.normalize(decode(p.t, body))
}

// managers prints a line for each entry of the last body's managed fields. Their order depends on
// the times, and is not printed.
func (p *player) managers() string {
	object, _ := p.last.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	lines := []string{}
	for _, entry := range entries {
		entry, ok := entry.(map[string]any)
		require.True(p.t, ok, "an entry is an object: %v", entry)
		require.Equal(p.t, "FieldsV1", entry["fieldsType"])
		line := fmt.Sprintf("%v: %v %v", entry["manager"], entry["operation"], entry["apiVersion"])
		if subresource, ok := entry["subresource"]; ok {
			line += fmt.Sprintf(" of %v", subresource)
		}
		if !isTime(entry["time"]) {
			line += " without time"
		}
		line = strings.ReplaceAll(line, p.ns, "ns")
		lines = append(lines, line+" "+p.print(entry["fieldsV1"]))
	}
	if len(lines) == 0 {
		return "no managed fields"
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// set remembers a field of the last body.
func (p *player) set(name string, fields []string) {
	value := p.last
	for _, field := range fields {
		object, ok := value.(map[string]any)
		require.True(p.t, ok, "no field %s in %v", field, p.last)
		value = object[field]
	}
	p.vars[name] = fmt.Sprint(value)
}

// hash remembers the hash of text.
func (p *player) hash(name, text string) {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, text) // never fails
	p.vars[name] = fmt.Sprintf("0x%016x", hash.Sum64())
	p.vars[name+"end"] = fmt.Sprintf("0x%016x", hash.Sum64()+1)
	p.names[p.vars[name]], p.names[p.vars[name+"end"]] = "$"+name, "$"+name+"end"
}

var variable = regexp.MustCompile(`\$[a-z]+[0-9]*`)

func (p *player) substitute(line string) string {
	return variable.ReplaceAllStringFunc(line, func(name string) string {
		if value, ok := p.vars[name[1:]]; ok {
			return value
		}
		value, ok := p.versionOf(name[1:])
		require.True(p.t, ok, "%s was never set: %s", name, line)
		return value
	})
}

// watch is an open watch; its goroutine decodes the events.
type watch struct {
	close  func()
	events chan json.RawMessage // closed at the stream's end
	err    error                // the error that ended it, nil for EOF; read after events is closed
}

func (p *player) openWatch(name, path string) string {
	_, err := url.Parse(path)
	require.NoError(p.t, err)
	response := p.request(http.MethodGet, path, "")
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return p.answer(response)
	}
	w := &watch{close: func() { response.Body.Close() }, events: make(chan json.RawMessage, 100)}
	p.t.Cleanup(w.close)
	p.watches[name] = w
	go func() {
		defer close(w.events)
		decoder := json.NewDecoder(response.Body)
		for {
			var event json.RawMessage
			if err := decoder.Decode(&event); err != nil {
				if err != io.EOF {
					w.err = err
				}
				return
			}
			select {
			case w.events <- event:
			case <-p.t.Context().Done():
				return
			}
		}
	}()
	return ""
}

func (p *player) watch(name string) *watch {
	w, ok := p.watches[name]
	require.True(p.t, ok, "no watch %s", name)
	return w
}

func (w *watch) next(p *player, count string) string {
	var n int
	_, err := fmt.Sscan(count, &n)
	require.NoError(p.t, err, "next wants a number")
	var lines []string
	for range n {
		line, ok := w.event(p)
		lines = append(lines, line)
		if !ok {
			break
		}
	}
	return strings.Join(lines, "\n")
}

func (w *watch) rest(p *player) string {
	var lines []string
	for ok := true; ok; {
		var line string
		line, ok = w.event(p)
		if !strings.HasPrefix(line, "BOOKMARK") || !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// event prints one event, or how the stream ended.
func (w *watch) event(p *player) (line string, ok bool) {
	select {
	case <-time.After(patience):
		require.Fail(p.t, "no event", "%s: after %s", p.line, patience)
		return "", false
	case raw, ok := <-w.events:
		switch {
		case !ok && w.err != nil:
			return w.err.Error(), false
		case !ok:
			return "EOF", false
		}
		event, isObject := decode(p.t, raw).(map[string]any)
		require.True(p.t, isObject, "an event is an object: %s", raw)
		return fmt.Sprintf("%v %s", event["type"], p.normalizeEvent(event)), true
	}
}

// decode keeps the spelling of numbers.
func decode(t *testing.T, body []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value), "decode %s", body)
	return value
}
