// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
)

// asked is a request, and what the server answered: objects, events, or the reason of a refusal.
type asked struct {
	words, query string
	objects      []apitest.Event // without a type if they are of a list
	refusal      string
}

// serverLog is a server with five writes. The first two versions are compacted.
type serverLog struct {
	server  *apitest.Server
	events  []apitest.Event // also those that are compacted
	now     apitest.History
	answers []asked
}

func readServerLog() (*serverLog, error) {
	l := &serverLog{server: apitest.NewServer(apitest.Options{})}
	if err := l.server.StartPipe(); err != nil {
		return nil, err
	}
	defer l.server.Close()
	s := l.server
	err := errors.Join(s.Create(config("a", "1")), s.Create(config("b", "1")),
		s.Update(config("a", "2")))
	l.events = s.History("configmaps", 100).Events
	first, last := l.events[0].ResourceVersion, s.ResourceVersion()
	s.Faults().Compact()
	err = errors.Join(err, s.Delete(config("b", "1")), s.Create(config("c", "1")))
	if err != nil {
		return nil, err
	}
	l.now = s.History("configmaps", 100)
	for _, e := range l.now.Events {
		if !slices.Contains(l.events, e) {
			l.events = append(l.events, e)
		}
	}
	const at = "resourceVersion="
	for _, a := range []asked{
		{words: "LIST", query: ""},
		{words: "LIST exactly @" + last, query: "resourceVersionMatch=Exact&" + at + last},
		{words: "WATCH from @" + last, query: "watch=1&" + at + last},
		{words: "WATCH from @" + first, query: "watch=1&" + at + first},
	} {
		if err := l.ask(&a); err != nil {
			return nil, err
		}
		l.answers = append(l.answers, a)
	}
	return l, nil
}

func config(name, content string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Data:       map[string]string{"content": content},
	}
}

// answer is a list, an event, or a Status.
type answer struct {
	Type   string
	Reason string
	Items  []corev1.ConfigMap
	Object struct {
		Metadata metav1.ObjectMeta
		Reason   string
		Code     int
	}
}

// ask sends a request and reads a list, or the events until the newest.
func (l *serverLog) ask(a *asked) error {
	response, err := l.server.Client().Get(l.server.URL + "/api/v1/configmaps?" + a.query)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	for {
		var got answer
		if err := decoder.Decode(&got); err != nil {
			return fmt.Errorf("decode the answer to %s: %w", a.words, err)
		}
		for i := range got.Items {
			a.add("", &got.Items[i].ObjectMeta)
		}
		switch {
		case response.StatusCode != http.StatusOK:
			a.refusal = fmt.Sprint(response.StatusCode, " ", got.Reason)
			return nil
		case got.Type == "ERROR":
			a.refusal = fmt.Sprint(got.Object.Code, " ", got.Object.Reason)
			return nil
		case got.Type == "":
			return nil
		}
		a.add(got.Type, &got.Object.Metadata)
		if got.Object.Metadata.ResourceVersion == l.now.ResourceVersion {
			return nil
		}
	}
}

func (a *asked) add(kind string, meta *metav1.ObjectMeta) {
	a.objects = append(a.objects, apitest.Event{
		ResourceVersion: meta.ResourceVersion, Type: kind, Key: meta.Namespace + "/" + meta.Name,
	})
}

// drawServer draws the log of a server, and what lists and watches get from it.
func drawServer(string) ([]byte, error) {
	l, err := readServerLog()
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 394, title: "One log: lists and watches",
		desc: "Each write takes the next resourceVersion. A list is the state at one version, a " +
			"watch is the log after one. The server refuses lists and watches of compacted states.",
	}
	c.text("name", 30, 38, "The server's log: every write takes the next resourceVersion")
	for i, e := range l.events {
		c.event(30+i*172, 56, e)
	}
	compacted := func(e apitest.Event) bool { return e.ResourceVersion == l.now.Compacted }
	edge := 30 + slices.IndexFunc(l.events, compacted)*172 - 6
	c.path("wait", "", point{edge, 46}, point{edge, 114})
	c.anchored("end", "small w", edge-6, 118, "states before @"+l.now.Compacted+" are compacted")
	for i, a := range l.answers {
		y := 140 + i*60
		c.rect("soft", 20, y, 940, 50, 10)
		c.text("mono", 36, y+30, a.words)
		c.arrow(false, point{210, y + 25}, point{260, y + 25})
		for j, e := range a.objects {
			c.event(274+j*172, y+3, e)
		}
		if a.refusal != "" {
			c.text("name w", 280, y+30, a.refusal)
		}
	}
	return c.svg(), nil
}

// event draws a write, or an object of a list.
func (c *canvas) event(x, y int, e apitest.Event) {
	colour := int(e.Key[len(e.Key)-1] - 'a')
	c.rect("card", x, y, 160, 44, 8)
	c.chip(colour, x+8, y+10, 52, e.Key)
	if e.Type == "" {
		c.text("small dim", x+68, y+27, "@"+e.ResourceVersion)
		return
	}
	c.text("small", x+68, y+19, e.Type)
	c.text("small dim", x+68, y+35, "@"+e.ResourceVersion)
}
