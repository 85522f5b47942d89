// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// subjectVariable is the environment variable that makes this program a subject: a process with one
// of the programs. Its value is a subjectConfig in JSON.
const subjectVariable = "INFORMERSTACK_SOAK_SUBJECT"

type subjectConfig struct {
	Program string
	Server  string // URL
	Names   int
}

// sample is the state of a subject at one moment.
type sample struct {
	Synced     bool
	Ended      bool
	Error      string // of a program that has ended
	Goroutines int
	Files      int           // open files, sockets included
	Heap       uint64        // bytes that the last garbage collection found reachable
	CPU        time.Duration // since the start
	Reconciles int64         // since the start
	Duplicates int64         // notifications of a version that the handler had, since the start
	Breaches   int           // calls that contradict an earlier one, since the start
	Examples   []string      // of breaches
	Latency    counts        // since the last sample
}

// subject serves its samples and marks on a port of its own, which it prints first. It ends when
// its standard input does.
type subject struct {
	recorder *recorder
	synced   atomic.Bool
	stop     context.CancelFunc
	ended    chan struct{}
	err      error // set before ended closes
}

func runSubject(config subjectConfig) error {
	klog.SetLogger(logr.Discard()) // the faults fill the log
	program, ok := programs[config.Program]
	if !ok {
		return fmt.Errorf("no program %q", config.Program)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	restConfig := &rest.Config{Host: config.Server, UserAgent: config.Program, QPS: -1}
	httpClient, err := rest.HTTPClientFor(restConfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfigAndClient(restConfig, httpClient)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &subject{
		recorder: newRecorder(config.Names), stop: cancel, ended: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/sample", s.sample)
	mux.HandleFunc("/marks", s.marks)
	mux.HandleFunc("/newest", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, s.recorder.newest.Load())
	})
	gate := &s.recorder.gate
	mux.HandleFunc("/block", func(http.ResponseWriter, *http.Request) { gate.Lock() })
	mux.HandleFunc("/unblock", func(http.ResponseWriter, *http.Request) { gate.Unlock() })
	mux.HandleFunc("/start", func(http.ResponseWriter, *http.Request) {
		go func() {
			defer close(s.ended)
			s.err = program(ctx, client, s.recorder, func() { s.synced.Store(true) })
			httpClient.CloseIdleConnections()
		}()
	})
	mux.HandleFunc("/stop", func(http.ResponseWriter, *http.Request) {
		cancel()
		<-s.ended
	})
	go func() { _ = http.Serve(listener, mux) }() // until the process ends
	fmt.Println(listener.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// sample answers with a sample. With the parameter collect, the garbage is collected first.
func (s *subject) sample(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("collect") {
		runtime.GC()
		runtime.GC() // memory held by finalizers and sync.Pools
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	result := sample{
		Synced: s.synced.Load(), Goroutines: runtime.NumGoroutine(), Files: openFiles(),
		Heap: live[0].Value.Uint64(), CPU: usedCPU(), Reconciles: s.recorder.reconciles.Load(),
		Duplicates: s.recorder.duplicates.Load(), Latency: s.recorder.latency.take(),
	}
	s.recorder.mu.Lock()
	result.Breaches, result.Examples = s.recorder.breaches, s.recorder.examples
	s.recorder.mu.Unlock()
	select {
	case <-s.ended:
		result.Ended = true
		if s.err != nil {
			result.Error = s.err.Error()
		}
	default:
	}
	_ = json.NewEncoder(w).Encode(result) // a broken connection is seen by the reader
}

// marks answers with the marks of every object and handler, in the order of handlers.
func (s *subject) marks(w http.ResponseWriter, _ *http.Request) {
	for i := range s.recorder.views {
		view := s.recorder.views[i]
		encoded := make([]byte, 0, 8*len(view))
		for n := range view {
			encoded = binary.LittleEndian.AppendUint64(encoded, view[n].Load())
		}
		if _, err := w.Write(encoded); err != nil {
			return
		}
	}
}

// openFiles counts the open files of this process; 0 where there is no /proc.
func openFiles() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files) - 1 // without the folder itself
}

// usedCPU is the time that this process has used the processors; 0 where there is no /proc.
func usedCPU() time.Duration {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	const user, system, tick = 11, 12, 10 * time.Millisecond // after the name; see proc(5)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+2:]))
	ticks := 0
	for _, i := range []int{user, system} {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// subjectMain runs a subject if the environment asks for one, and does not return then.
func subjectMain() {
	text, ok := os.LookupEnv(subjectVariable)
	if !ok {
		return
	}
	var config subjectConfig
	err := json.Unmarshal([]byte(text), &config)
	if err = errors.Join(err, runSubject(config)); err != nil {
		fmt.Fprintln(os.Stderr, "soak subject:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
