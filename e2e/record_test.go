// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/tools/recording"
	"example.com/informerstack/realserver/cluster"
)

var record = flag.Bool("record", false, "record testdata/wire anew")

const recorded = "/api/v1/namespaces/wire/configmaps"

// TestRecord writes testdata/wire: the answers of this server to a reflector, and its errors.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("needs -record")
	}
	recordings := []struct {
		file, about string
		play        func(r *recorder)
	}{
		{"list_then_watch", "A LIST, a watch from its version until the timeout, a watch that " +
			"has expired, a relist.", listThenWatch},
		{"watchlist", "A streaming list that continues as a watch, a watch that has expired, a " +
			"streaming list again.", watchList},
		{"pages", "A LIST in pages of two, while the collection changes.", pages},
		{"answers", "Everything but objects: errors, tables, metadata.", answers},
	}
	for _, recording := range recordings {
		r := newRecorder(t, recording.about)
		r.send("POST", "/api/v1/namespaces", `{"metadata":{"name":"wire"}}`)
		recording.play(r)
		file := filepath.Join("../testdata/wire", recording.file+".json")
		require.NoError(t, r.recording.Save(file))
		r.send("DELETE", recorded, "")
	}
}

func listThenWatch(r *recorder) {
	r.create("a")
	r.create("b")
	r.send("GET", recorded, "") // from now on the cache has both
	r.ask(recorded + "?limit=500&resourceVersion=0")
	r.stream(recorded+"?allowWatchBookmarks=true&timeoutSeconds=4&watch=true&resourceVersion="+
		r.version, func() {
		r.create("c")
		r.change("a")
		r.send("DELETE", recorded+"/b", "")
	})
	last := r.version
	r.create("d")
	forget(r.t)
	r.stream(recorded+"?allowWatchBookmarks=true&timeoutSeconds=4&watch=true&resourceVersion="+last,
		nil)
	r.ask(recorded + "?resourceVersion=" + last)
}

func watchList(r *recorder) {
	const path = recorded +
		"?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true" +
		"&timeoutSeconds=4&watch=true"
	r.create("a")
	r.create("b")
	r.stream(path, func() {
		r.create("c")
		r.change("a")
		r.send("DELETE", recorded+"/b", "")
	})
	last := r.version
	r.create("d")
	forget(r.t)
	r.stream(recorded+"?allowWatchBookmarks=true&timeoutSeconds=4&watch=true&resourceVersion="+last,
		nil)
	r.stream(path+"&resourceVersion="+last, nil)
}

func pages(r *recorder) {
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		r.create(name)
	}
	r.ask(recorded + "?limit=2")
	r.create("bb")
	r.ask(recorded + "?limit=2&continue=" + r.next)
	r.ask(recorded + "?limit=2&continue=" + r.next)
}

func answers(r *recorder) {
	r.create("a")
	r.ask(recorded + "/a")
	r.ask(recorded+"/a", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	r.ask(recorded, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	r.ask(recorded, "application/json;as=Table;g=meta.k8s.io;v=v1")
	r.ask(recorded + "/missing")
	r.ask(recorded + "?resourceVersion=1000000000")
	r.keep("POST", recorded, `{"metadata":{"name":"Bad_Name"}}`)
	r.keep("POST", recorded, `{"metadata":{"name":"a"}}`)
	r.keep("PUT", recorded+"/a", `{"metadata":{"name":"a","resourceVersion":"1"}}`)
	r.ask(recorded + "?limit=1")
	old := r.version
	forget(r.t)
	r.ask(recorded + "?resourceVersionMatch=Exact&resourceVersion=" + old)
	r.stream(recorded+"?watch=true&resourceVersion="+old, nil)
}

// recorder sends requests to the cluster and keeps the answers.
type recorder struct {
	t         *testing.T
	client    *http.Client
	recording recording.Recording
	version   string // the newest resourceVersion of a list or an event
	next      string // the last continue token
}

func newRecorder(t *testing.T, about string) *recorder {
	config := shared.Config(cluster.AdminToken)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	version, err := kubernetes.NewForConfigOrDie(config).Discovery().ServerVersion()
	require.NoError(t, err)
	return &recorder{t: t, client: client,
		recording: recording.Recording{About: about, Server: version.GitVersion}}
}

func (r *recorder) create(name string) {
	r.send("POST", recorded, `{"metadata":{"name":"`+name+`"},"data":{"k":"1"}}`)
}

func (r *recorder) change(name string) {
	r.send("PUT", recorded+"/"+name, `{"metadata":{"name":"`+name+`"},"data":{"k":"2"}}`)
}

// send makes a request that is not recorded.
func (r *recorder) send(method, path, body string) {
	response, _ := r.open(method, path, "", body)
	require.NoError(r.t, response.Body.Close())
}

// ask records a GET.
func (r *recorder) ask(path string, accept ...string) {
	r.keepExchange(r.open("GET", path, strings.Join(accept, ","), ""))
}

// keep records any other request.
func (r *recorder) keep(method, path, body string) {
	r.keepExchange(r.open(method, path, "", body))
}

func (r *recorder) keepExchange(response *http.Response, exchange recording.Exchange) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)
	exchange.Body = body
	r.learn(body)
	r.recording.Exchanges = append(r.recording.Exchanges, exchange)
}

// stream records a watch from its start until the server ends it. It is open while during runs.
func (r *recorder) stream(path string, during func()) {
	response, exchange := r.open("GET", path, "", "")
	defer response.Body.Close()
	if during != nil {
		during()
	}
	decoder := json.NewDecoder(response.Body)
	for {
		var line json.RawMessage
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(r.t, err)
		exchange.Events = append(exchange.Events, line)
		var event struct{ Object json.RawMessage }
		require.NoError(r.t, json.Unmarshal(line, &event))
		r.learn(event.Object)
	}
	r.recording.Exchanges = append(r.recording.Exchanges, exchange)
}

func (r *recorder) open(method, path, accept, body string) (*http.Response, recording.Exchange) {
	exchange := recording.Exchange{Method: method, Path: path, Accept: accept,
		Header: map[string]string{}}
	host := shared.Config("").Host
	request, err := http.NewRequestWithContext(r.t.Context(), method, host+path,
		strings.NewReader(body))
	require.NoError(r.t, err)
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	if body != "" {
		exchange.Sent = json.RawMessage(body)
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.client.Do(request)
	require.NoError(r.t, err)
	exchange.Code = response.StatusCode
	for _, name := range recording.RecordedHeaders {
		if value := response.Header.Get(name); value != "" {
			exchange.Header[name] = value
		}
	}
	return response, exchange
}

// learn stores the values that the next request needs.
func (r *recorder) learn(body []byte) {
	var object struct {
		Metadata struct{ ResourceVersion, Continue string }
	}
	require.NoError(r.t, json.Unmarshal(body, &object))
	if version := object.Metadata.ResourceVersion; version != "" {
		r.version = version
	}
	r.next = object.Metadata.Continue
}
