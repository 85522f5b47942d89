// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Live is the laboratory as a program for a browser: the API server, the pieces and the workers in
// one Web Worker.
//
//	page <-- postMessage --> [live: apitest -> reflector -> ... -> controller]
//
// Build it with informerstack lab export --live, which writes the page and the scripts that load
// it. Read main.go (what runs), page.go (the messages, which protocol.md describes) and pipeline.go
// (how the pieces are connected). Goroutines: those of the pieces, of the workload and of the
// server, one that sends the frames, and one for each request of the page. They share one thread.
// Locking: none here. The tests are in ../browser: go test -run TestLive .
package main

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
)

// The workload is smaller than that of informerstack run, because everything shares one thread.
const (
	seed    = 1
	rate    = 1
	objects = 6
	// attempts is how often a key is tried before it is a dead letter, which the page shows.
	attempts = 10

	writesPerSecond = 50
	writesBurst     = 100
)

func main() {
	if err := serve(context.Background()); err != nil {
		send(failure{err.Error()})
	}
}

// serve runs the laboratory until it fails.
func serve(ctx context.Context) error {
	server := apitest.NewServer(apitest.Options{})
	if err := server.StartPipe(); err != nil { // a browser has no sockets
		return err
	}
	work := configmaps.NewWorkload(server, seed, rate, objects)
	l := lab.New(lab.Options{
		Resource: "configmaps", Server: server, Workload: work,
		Settings: lab.Settings{Queue: "deltafifo", WatchList: true, Workers: 2, Attempts: attempts},
	})
	config := &rest.Config{
		Host: server.URL, Transport: server.Transport(),
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		QPS:           writesPerSecond, Burst: writesBurst,
	}
	if err := l.Elect(config); err != nil {
		return err
	}
	defer work.Start(false)()
	if err := connect(l); err != nil {
		return err
	}
	ctx = klog.NewContext(ctx, logr.Discard())
	return l.Run(ctx, func(ctx context.Context, s lab.Settings) error {
		return run(ctx, l, config, s)
	})
}
