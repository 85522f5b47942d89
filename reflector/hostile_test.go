// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/answers"
	"example.com/informerstack/reflector/wire"
)

// A LIST that is no list is an error, and the next one follows after a wait.
func TestHostile_Lists(t *testing.T) {
	for name, test := range map[string]struct{ answer, err string }{
		"no HTTP":      {"\x00\xff\r\n\r\n", "malformed HTTP response"},
		"closed":       {"", "EOF"},
		"another type": {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>", ""},
		"a bad type":   {"HTTP/1.1 200 OK\r\nContent-Type: \x7f/;=\r\n\r\n{", ""},
		"no type":      {"HTTP/1.1 200 OK\r\n\r\n<html>", ""},
		"cut off":      {aList + `"items":[{"metadata":{"name":"a"`, ""},
		"too short":    {"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{", "unexpected EOF"},
		"another kind": {okJSON + `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, ""},
		"wrong kinds":  {aList + `"items":[{"metadata":[]}]}`, "cannot unmarshal array"},
		"items is an object": {
			aList + `"items":{}}`, "",
		},
		"deep": {aList + `"items":[{"x":` + strings.Repeat("[", 20_000), ""},
		"deep and complete": {
			aList + `"items":[{"x":` + strings.Repeat("[", 20_000) +
				strings.Repeat("]", 20_000) + `}]}`, "max depth",
		},
		"an answer of 204":   {"HTTP/1.1 204 No Content\r\n\r\n", ""},
		"a redirect nowhere": {"HTTP/1.1 302 Found\r\nLocation: \x7f\r\n\r\n", ""},
		"a redirect without end": {
			"HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /again\r\n\r\n",
			"stopped after 10 redirects",
		},
		"an error that is not JSON": {error500 + `{"kind":`, "an error on the server"},
		"a Status of wrong kinds":   {error500 + `{"kind":"Status","code":"x"}`, "an error on the"},
	} {
		t.Run(name, func(t *testing.T) {
			onHostile(t, func(t *testing.T, impl string, s *hostile) {
				s.answer = func(_ string, out *connection) { out.write(test.answer) }
				s.run(impl, 10*time.Minute)
				require.Greater(t, len(s.requests), 8)
				require.Less(t, len(s.requests), 500)
				require.Empty(t, s.store.diary)
				if impl != "client-go" {
					s.failed(test.err)
				}
			})
		})
	}
}

// A streamed LIST of any length takes no more than wire.Limits allow. An error, and a LIST that
// client-go's client reads whole, are read to their end.
func TestHostile_LongAnswers(t *testing.T) {
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	for range 1 << 10 {
		_, _ = zip.Write(bytes.Repeat([]byte(" "), 1<<10))
	}
	_ = zip.Close()
	for name, test := range map[string]struct {
		answer, endless, err string
	}{
		"a list of blanks":       {okJSON, " ", "too large"},
		"a list of items":        {aList + `"items":[{}`, `,{}`, "too large"},
		"a list with one name":   {aList + `"items":[{"metadata":{"name":"`, "a", "too large"},
		"a list of an error":     {error500, "a", "an error on the server"},
		"a Status":               {error500 + `{"kind":"Status","message":"`, "a", "an error on"},
		"a Status in a list":     {okJSON + `{"kind":"Status","message":"`, "a", "too large"},
		"a Status of many parts": {error500 + `{"details":{"causes":[{}`, ",{}", "an error on"},
	} {
		t.Run(name, func(t *testing.T) {
			onHostile(t, func(t *testing.T, impl string, s *hostile) {
				s.wire.Limits = wire.Limits{ObjectBytes: 1 << 15, ListBytes: 1 << 15}
				s.answer = func(_ string, out *connection) {
					out.write(test.answer)
					out.flood(test.endless)
				}
				s.run(impl, 2*time.Minute)
				require.Greater(t, len(s.requests), 4)
				require.Less(t, len(s.requests), 250)
				each, err := 1<<21, test.err // flood sends less
				switch {
				case test.err != "too large": // an error
				case impl == "ours streaming":
					each = 1 << 16
				default:
					err = "json parse error" // where the server has stopped
				}
				require.Less(t, s.sent, len(s.requests)*each)
				require.Empty(t, s.store.diary)
				if impl != "client-go" {
					s.failed(err)
				}
			})
		})
	}
	t.Run("gzip", func(t *testing.T) {
		onHostile(t, func(t *testing.T, impl string, s *hostile) {
			s.wire.Limits = wire.Limits{ListBytes: 1 << 15}
			s.answer = func(_ string, out *connection) {
				out.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" +
					"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + bomb.String())
			}
			s.run(impl, 5*time.Minute)
			if impl == "ours streaming" {
				s.failed("answer of the server is too large")
			}
		})
	})
}

// An error is read to its end, as by client-go.
func TestLimits_NoneByDefault(t *testing.T) {
	onHostile(t, func(t *testing.T, impl string, s *hostile) {
		s.answer = func(_ string, out *connection) {
			out.write(error500)
			out.flood("a")
		}
		s.run(impl, time.Second)
		require.Greater(t, s.sent, 1_000_000)
	})
}

// A LIST that brings nothing is given up after ListDeadline, and another follows after a wait.
func TestHostile_SlowLists(t *testing.T) {
	for name, answer := range map[string]func(out *connection){
		"silent":           func(out *connection) { <-out.gone },
		"silent in a list": func(out *connection) { out.write(aList); <-out.gone },
		"a byte a minute": func(out *connection) {
			out.write(aList)
			out.trickle(theItems)
		},
		"an error, a byte a minute": func(out *connection) {
			out.write(error500)
			out.trickle(`{"kind":"Status"}`)
		},
		"come back tomorrow": func(out *connection) {
			out.write("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 86400\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			onHostile(t, func(t *testing.T, impl string, s *hostile) {
				s.opts.ListDeadline = time.Minute
				s.answer = func(_ string, out *connection) { answer(out) }
				s.run(impl, 30*time.Minute)
				if impl == "client-go" {
					require.Len(t, s.requests, 1, "it waits for ever")
					return
				}
				limit := 31
				if name == "come back tomorrow" {
					limit *= 2 // rest repeats a request in the minute in which the list is given up
				}
				require.Greater(t, len(s.requests), 10)
				require.Less(t, len(s.requests), limit)
				s.failed("failed to list *v1.Pod: LIST brings nothing new for 1m0s")
			})
		})
	}
}

// Pages without objects and without end are given up as well.
func TestHostile_EmptyPages(t *testing.T) {
	onHostile(t, func(t *testing.T, impl string, s *hostile) {
		if impl == "client-go" {
			t.Skip("it would list for ever")
		}
		s.opts.ListDeadline = time.Minute
		s.answer = func(_ string, out *connection) {
			time.Sleep(time.Second)
			out.write(okJSON, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":`+
				`{"resourceVersion":"5","continue":"%d"},"items":[]}`, time.Now().UnixNano()))
		}
		s.run(impl, 10*time.Minute)
		s.failed("LIST brings nothing new for 1m0s")
	})
}

// A slow LIST that brings objects is not given up.
func TestListDeadline_Progress(t *testing.T) {
	onHostileAs(t, "ours streaming", func(t *testing.T, impl string, s *hostile) {
		s.opts.ListDeadline = time.Minute
		s.answer = func(request string, out *connection) {
			if strings.HasPrefix(request, "WATCH") {
				out.write(okJSON)
				<-out.gone
			}
			out.write(aList + `"items":[{}`)
			for range 5 {
				time.Sleep(50 * time.Second)
				out.write(",{}")
			}
			out.write("]}")
		}
		s.run(impl, 6*time.Minute)
		require.Equal(t, []string{"replace by 6"}, s.store.diary)
		require.Empty(t, s.errs)
	})
}

// A LIST that brought objects and then falls silent is given up, too.
func TestListDeadline_SilentAfterProgress(t *testing.T) {
	onHostileAs(t, "ours streaming", func(t *testing.T, impl string, s *hostile) {
		s.opts.ListDeadline = time.Minute
		s.answer = func(_ string, out *connection) {
			out.write(aList + `"items":[{}`)
			for range 5 {
				time.Sleep(50 * time.Second)
				out.write(",{}")
			}
			<-out.gone
		}
		s.run(impl, 8*time.Minute)
		s.failed("failed to list *v1.Pod: LIST brings nothing new for 1m0s")
	})
}

// A watch that is no watch is opened again after waits; the store keeps what it has.
func TestHostile_Watches(t *testing.T) {
	const added = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"`
	for name, answer := range map[string]func(out *connection){
		"closed":       func(*connection) {},
		"no HTTP":      func(out *connection) { out.write("\x00\xff\r\n\r\n") },
		"another type": func(out *connection) { out.write("HTTP/1.1 200 OK\r\n\r\n<html>") },
		"no JSON":      func(out *connection) { out.write(okJSON + "<html>") },
		"no event":     func(out *connection) { out.write(okJSON + `[]1 "a"`) },
		"null":         func(out *connection) { out.write(okJSON + "null{}null") },
		"no object":    func(out *connection) { out.write(okJSON + `{"type":"ADDED"}`) },
		"cut off":      func(out *connection) { out.write(okJSON + added) },
		"an odd type":  func(out *connection) { out.write(okJSON + `{"type":{},"object":1}`) },
		"an error of another kind": func(out *connection) {
			out.write(okJSON + `{"type":"ERROR","object":{"kind":"Pod","apiVersion":"v1"}}`)
		},
		"an empty error": func(out *connection) {
			out.write(okJSON + `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1"}}`)
		},
		"an unknown kind": func(out *connection) {
			out.write(okJSON + `{"type":"ADDED","object":{"kind":"Foo","apiVersion":"x/v1"}}`)
		},
		"another kind": func(out *connection) {
			out.write(okJSON + `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1"}}`)
		},
		"deep": func(out *connection) {
			out.write(okJSON+`{"type":"ADDED","object":`, strings.Repeat("[", 20_000))
		},
		"an endless event":   func(out *connection) { out.write(okJSON + added); out.flood("a") },
		"an endless blank":   func(out *connection) { out.write(okJSON); out.flood(" ") },
		"an endless error":   func(out *connection) { out.write(error500); out.flood("a") },
		"an endless integer": func(out *connection) { out.write(okJSON); out.flood("1") },
		"an endless array":   func(out *connection) { out.write(okJSON); out.flood("[],") },
		"an endless Status": func(out *connection) {
			out.write(okJSON + `{"type":"ERROR","object":{"kind":"Status","message":"`)
			out.flood("a")
		},
		"a byte a minute": func(out *connection) { out.write(okJSON); out.trickle(added) },
		"silent":          func(out *connection) { <-out.gone },
	} {
		t.Run(name, func(t *testing.T) {
			onHostile(t, func(t *testing.T, impl string, s *hostile) {
				s.wire.Limits = wire.Limits{ObjectBytes: 1 << 15}
				s.wire.ReadAhead = wire.NewBudget(1 << 15)
				s.answer = func(request string, out *connection) {
					if strings.HasPrefix(request, "LIST") {
						out.write(aList, theItems)
						return
					}
					answer(out)
				}
				s.run(impl, 30*time.Minute)
				t.Logf("%d requests", len(s.requests))
				limit := 500
				if name == "closed" {
					limit = 2500 // rest itself tries ten times, a second apart
				}
				require.Less(t, len(s.requests), limit)
				if impl != "client-go" { // which waits for ever for a byte a minute
					require.Greater(t, len(s.requests), 3)
				}
				each := 1 << 21 // flood sends less
				if impl == "ours streaming" && name != "an endless error" {
					each = 1 << 17 // an event, the Budget, and what each watch may hold beyond it
				}
				require.Less(t, s.sent, (1+len(s.requests))*each)
				require.Equal(t, "a@1", s.store.state())
			})
		})
	}
}

// Events that a server should not send are taken as they are, as by client-go, if they are objects
// of the type; the others are skipped.
func TestHostile_Events(t *testing.T) {
	pod := func(kind, name, resourceVersion string) string {
		meta, err := json.Marshal(metav1.ObjectMeta{
			Namespace: "ns", Name: name, ResourceVersion: resourceVersion,
		})
		require.NoError(t, err)
		return fmt.Sprintf(
			`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":%s}}`, kind, meta)
	}
	for name, test := range map[string]struct {
		events []string
		diary  string
		next   string // the request after the end of the watch
	}{
		"twice": {
			[]string{pod("ADDED", "b", "6"), pod("ADDED", "b", "6"), pod("DELETED", "b", "7"),
				pod("DELETED", "b", "7")},
			"add ns/b@6, add ns/b@6, delete ns/b@7, delete ns/b@7", "WATCH resourceVersion=7",
		},
		"out of order": {
			[]string{pod("MODIFIED", "b", "9"), pod("ADDED", "b", "6"), pod("ADDED", "c", "8")},
			"update ns/b@9, add ns/b@6, add ns/c@8", "WATCH resourceVersion=8",
		},
		"delete before add": {
			[]string{pod("DELETED", "b", "6"), pod("MODIFIED", "b", "7")},
			"delete ns/b@6, update ns/b@7", "WATCH resourceVersion=7",
		},
		"of another namespace": {
			[]string{strings.Replace(pod("ADDED", "b", "6"), `"ns"`, `"other"`, 1)},
			"add other/b@6", "WATCH resourceVersion=6",
		},
		"without name": {[]string{pod("ADDED", "", "6")}, "add ns/@6", "WATCH resourceVersion=6"},
		"with an odd name": {
			[]string{pod("ADDED", "a/b", "6"), pod("ADDED", strings.Repeat("x", 9), "\x1b[2J")},
			"add ns/a/b@6, add ns/xxxxxxxxx@\x1b[2J", "WATCH resourceVersion=\x1b[2J",
		},
		"of another kind": {
			[]string{strings.Replace(pod("ADDED", "b", "6"), "Pod", "Node", 1),
				strings.Replace(pod("BOOKMARK", "b", "7"), "Pod", "Node", 1),
				pod("ADDED", "c", "8")},
			"add ns/c@8", "WATCH resourceVersion=8",
		},
		"with fields twice": {
			[]string{`{"type":"DELETED","type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",` +
				`"metadata":{"name":"b","name":"c","resourceVersion":"6"}}}`},
			"add c@6", "WATCH resourceVersion=6",
		},
		"with more fields": {
			[]string{`{"a":[],"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","b":{},` +
				`"metadata":{"name":"b","resourceVersion":"6","spec":[]}}}`},
			"add b@6", "WATCH resourceVersion=6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onHostile(t, func(t *testing.T, impl string, s *hostile) {
				s.playEvents(impl, test.events)
				require.Equal(t, test.diary, strings.Join(s.store.diary[1:], ", "))
				require.Equal(t, test.next, s.requests[2])
			})
		})
	}
}

// playEvents sends events in the first watch and ends it after ten seconds. The second watch
// remains silent.
func (s *hostile) playEvents(impl string, events []string) {
	var played atomic.Bool
	s.answer = func(request string, out *connection) {
		switch {
		case strings.HasPrefix(request, "LIST"):
			out.write(aList, theItems)
		case !played.Swap(true):
			out.write(okJSON, strings.Join(events, "\n"))
			time.Sleep(10 * time.Second)
		default:
			out.write(okJSON)
			<-out.gone
		}
	}
	s.run(impl, time.Minute)
}

// A change or a bookmark without a resourceVersion is taken, and the next watch resumes where the
// last one with a resourceVersion was. client-go starts again from any state, and does not notice
// what was deleted meanwhile.
func TestDifference_EventWithoutResourceVersion(t *testing.T) {
	for _, kind := range []string{"ADDED", "BOOKMARK"} {
		onHostile(t, func(t *testing.T, impl string, s *hostile) {
			s.playEvents(impl, []string{fmt.Sprintf(
				`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}}`,
				kind)})
			if kind == "ADDED" {
				require.Equal(t, "add b@", s.store.diary[1])
			}
			if impl == "client-go" {
				require.Equal(t, "WATCH", s.requests[2])
				return
			}
			require.Equal(t, "WATCH resourceVersion=5", s.requests[2])
			require.Equal(t, "5", s.ours.LastSyncResourceVersion())
		})
	}
}

// client-go's transport follows a redirect to another host, and sends the token along.
func TestHostile_RedirectToAnotherHost(t *testing.T) {
	var requests []string
	config := &rest.Config{
		Host: "https://server", BearerToken: "token", APIPath: "/api",
		Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			requests = append(requests, r.URL.Host+" "+r.Header.Get("Authorization"))
			other := "http://other" + strings.Repeat("r", len(requests))
			return &http.Response{
				StatusCode: http.StatusFound, Body: http.NoBody, Request: r,
				Header: http.Header{"Location": {other}},
			}, nil
		}),
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &v1.SchemeGroupVersion,
			NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		},
	}
	client, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	lw := wire.NewListWatch(client, "pods", "ns", newPod, wire.Options{})
	_, err = lw.ListStream(t.Context(), metav1.ListOptions{}, nil)
	require.ErrorContains(t, err, "stopped after 10 redirects")
	require.Len(t, requests, 10)
	require.Equal(t, "otherr Bearer token", requests[1])
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Whatever a watch sends, the reflector takes the same events of it as client-go's, up to the next
// LIST, and both end.
func FuzzWatch(f *testing.F) {
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","resourceVersion":"6"}}`
	for _, stream := range []string{
		`{"type":"ADDED","object":` + pod + `}{"type":"DELETED","object":` + pod + `}`,
		`{"type":"BOOKMARK","object":` + pod + `} {"type":"MODIFIED","object":` + pod,
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure",` +
			`"code":410,"reason":"Expired"}}`,
		`{"type":"ADDED","type":"DELETED","object":1,"object":` + pod + `}`,
		`{"object":{"metadata":{"name":"a","name":[]},"kind":"Pod"},"type":"ADDED"}`,
		`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"/",` +
			`"namespace":"a/b\u0000","resourceVersion":"-1"}}}`,
		`{"type":"ADDED","object":{"kind":"PodList","apiVersion":"v1","items":[` + pod + `]}}`,
		`{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1"}}`,
		`{"type":"","object":` + pod + `}` + "\n\n{}[]null",
		`{"type":"ADDED","object":{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`,
	} {
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		diaries := map[string]string{}
		for _, impl := range []string{"ours", "client-go"} {
			onHostileAs(t, impl, func(t *testing.T, impl string, s *hostile) {
				s.playEvents(impl, []string{stream})
				require.Less(t, len(s.requests), 40)
				diary := strings.Join(s.store.diary[1:], ", ")
				diaries[impl], _, _ = strings.Cut(diary, "replace")
			})
		}
		require.Equal(t, strings.TrimSuffix(diaries["client-go"], ", "),
			strings.TrimSuffix(diaries["ours"], ", "))
	})
}

// hostile is a server that writes whatever its answer writes, over pipes.
type hostile struct {
	t      *testing.T
	wire   wire.Options // of the streaming reflector
	opts   Options
	answer func(request string, out *connection) // closes the connection when it returns

	store *mapStore

	mu       sync.Mutex
	requests []string
	sent     int     // bytes that clients have taken
	errs     []error // that the WatchErrorHandler got
	ours     *Reflector
}

// onHostile runs f in a bubble with this reflector, once with whole lists and once with streamed
// ones, and with client-go's.
func onHostile(t *testing.T, f func(t *testing.T, impl string, s *hostile)) {
	for _, impl := range []string{"ours", "ours streaming", "client-go"} {
		t.Run("impl="+impl, func(t *testing.T) { onHostileAs(t, impl, f) })
	}
}

func onHostileAs(t *testing.T, impl string, f func(t *testing.T, impl string, s *hostile)) {
	synctest.Test(t, func(t *testing.T) {
		reported = func(error, string) {}
		options := Options{Name: "test", UseWatchList: new(bool)}
		s := &hostile{t: t, store: &mapStore{}, opts: options}
		f(t, impl, s)
	})
}

// run lets a reflector work for d. It fails unless everything ends when the reflector stops.
func (s *hostile) run(impl string, d time.Duration) {
	s.t.Helper()
	var reflector, servers sync.WaitGroup
	transport := &http.Transport{DialContext: func(
		_ context.Context, _, address string,
	) (net.Conn, error) {
		client, server := net.Pipe()
		servers.Go(func() { s.serve(address, server) })
		return client, nil
	}}
	client := answers.Client(s.t, transport)
	ctx, cancel := context.WithCancel(s.t.Context())
	reflector.Go(func() { s.reflect(ctx, impl, client) })
	time.Sleep(d)
	cancel()
	reflector.Wait()
	synctest.Wait() // the transport may still dial for a request that was cancelled
	transport.CloseIdleConnections()
	servers.Wait()
}

// reflect runs a reflector until ctx is done.
func (s *hostile) reflect(ctx context.Context, impl string, client rest.Interface) {
	plain := cache.NewListWatchFromClient(client, "pods", "ns", fields.Everything())
	if impl == "client-go" {
		runOf(impl, plain, s.store, s.opts)(ctx)
		return
	}
	lw := wire.NewListWatch(client, "pods", "ns", newPod, s.wire)
	s.opts.WatchErrorHandler = func(_ context.Context, _ *Reflector, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, err)
	}
	s.ours = New(plain, &v1.Pod{}, s.store, s.opts)
	if impl == "ours streaming" {
		s.ours = New(lw, &v1.Pod{}, s.store, s.opts)
	}
	s.ours.Run(ctx)
}

// serve answers the request on conn.
func (s *hostile) serve(address string, conn net.Conn) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	query := request.URL.Query()
	line := "LIST"
	if query.Get("watch") != "" {
		line = "WATCH"
	}
	for _, name := range []string{"resourceVersion", "continue"} {
		if query.Has(name) {
			line += fmt.Sprintf(" %s=%s", name, query.Get(name))
		}
	}
	if host, _, _ := net.SplitHostPort(address); host != "server" {
		line += " at " + host
	}
	s.mu.Lock()
	s.requests = append(s.requests, line)
	s.mu.Unlock()
	out := &connection{s: s, conn: conn, gone: make(chan struct{})}
	go func() {
		defer close(out.gone)
		_, _ = io.Copy(io.Discard, conn) // until one side closes
	}()
	s.answer(line, out)
}

// connection is where an answer is written to.
type connection struct {
	s    *hostile
	conn net.Conn
	gone chan struct{} // closed when the client has closed the connection
}

// Write counts what the client has read.
func (c *connection) Write(p []byte) (int, error) {
	n, err := c.conn.Write(p)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.sent += n
	return n, err
}

// write writes texts until the client reads no more.
func (c *connection) write(texts ...string) {
	for _, text := range texts {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// flood writes text until the client reads no more, 1 MiB at most.
func (c *connection) flood(text string) {
	text = strings.Repeat(text, 1+4096/len(text))
	for range (1 << 20) / len(text) {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// trickle writes the bytes of text, one a minute, and then blanks, until the client reads no more.
func (c *connection) trickle(text string) {
	for i := 0; ; i++ {
		next := " "
		if i < len(text) {
			next = text[i : i+1]
		}
		if _, err := io.WriteString(c, next); err != nil {
			return
		}
		time.Sleep(time.Minute)
	}
}

// failed requires that the error handler got an error with text.
func (s *hostile) failed(text string) {
	s.t.Helper()
	require.NotEmpty(s.t, s.errs)
	require.ErrorContains(s.t, s.errs[0], text)
}

// The beginnings of answers.
const (
	okJSON   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
	aList    = okJSON + `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},`
	theItems = `"items":[{"metadata":{"name":"a","resourceVersion":"1"}}]}`
	error500 = "HTTP/1.1 500 E\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
)
