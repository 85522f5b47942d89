// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"example.com/informerstack/apitest"
)

// result is what a run shows of one program.
type result struct {
	load load
	rows []row

	before, synced, after, stopped sample // before the start, and after each phase
	writes                         int64
	latency                        counts
	lost                           [handlerCount]int // last states that never came, by handler
	settled                        time.Duration     // all handlers but the slow one have them
}

// row is the state of a program at one moment. The counts are those since the start.
type row struct {
	at              time.Duration // since the load began
	writes          int64
	reconciles      int64
	p50, p99, p999  time.Duration // from write to reconcile, since the last row
	behind          lag           // the most of the other handlers and the reconciles
	slow, blocking  lag           // of these handlers
	duplicates      int64
	breaches        int
	goroutines      int
	files           int
	heap            uint64
	cpu             time.Duration
	requests, lists int     // since the last row
	machine         float64 // runnable processes of the whole machine, the average of a minute
}

func newRow(at time.Duration, writes int64, s sample, behind [handlerCount]lag) row {
	r := row{
		at: at, writes: writes, reconciles: s.Reconciles,
		p50: s.Latency.quantile(0.5), p99: s.Latency.quantile(0.99),
		p999: s.Latency.quantile(0.999), slow: behind[slow], blocking: behind[blocking],
		duplicates: s.Duplicates, breaches: s.Breaches, goroutines: s.Goroutines, files: s.Files,
		heap: s.Heap, cpu: s.CPU, machine: machineLoad(),
	}
	for h, l := range behind {
		if h != slow && h != blocking {
			r.behind.oldest = max(r.behind.oldest, l.oldest)
			r.behind.overdue = max(r.behind.overdue, l.overdue)
		}
	}
	return r
}

// countRequests counts requests, and those of them that list every object. A list of several pages
// is one request.
func (r *row) countRequests(asked []apitest.Request) {
	for _, request := range asked {
		if request.Query.Has("continue") {
			continue
		}
		r.requests++
		if request.Verb == "list" || request.Query.Get("sendInitialEvents") == "true" {
			r.lists++
		}
	}
}

func (r row) String() string {
	return fmt.Sprintf("%4.0fs %d writes, p50 %s p99 %s p99.9 %s, behind %.1fs %.1fs %.1fs, "+
		"%d duplicates, %d breaches, %d goroutines, %d files, %d MB, %.0fs CPU, %d requests, "+
		"%d lists, load %.0f",
		r.at.Seconds(), r.writes, rounded(r.p50), rounded(r.p99), rounded(r.p999),
		r.behind.oldest.Seconds(), r.slow.oldest.Seconds(), r.blocking.oldest.Seconds(),
		r.duplicates, r.breaches, r.goroutines, r.files, r.heap>>20, r.cpu.Seconds(), r.requests,
		r.lists, r.machine)
}

func rounded(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

func describe(s sample) string {
	return fmt.Sprintf("%d goroutines, %d files, %d MB, %.1fs CPU", s.Goroutines, s.Files,
		s.Heap>>20, s.CPU.Seconds())
}

// columns are the names of the values of csv.
const columns = "seconds,writes,reconciles,p50_ms,p99_ms,p999_ms,behind_s,slow_s,blocking_s," +
	"overdue,duplicates,breaches,goroutines,files,heap_mb,cpu_s,requests,lists,machine_load"

// csv returns the rows, after the totals in comments.
func (r *result) csv() []byte {
	var b bytes.Buffer
	for line := range strings.Lines(r.summary()) {
		b.WriteString("# " + line)
	}
	b.WriteString(columns + "\n")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/1e6) }
	for _, row := range r.rows {
		fmt.Fprintf(&b, "%.0f,%d,%d,%s,%s,%s,%.1f,%.1f,%.1f,%d,%d,%d,%d,%d,%d,%.1f,%d,%d,%.1f\n",
			row.at.Seconds(), row.writes, row.reconciles, ms(row.p50), ms(row.p99), ms(row.p999),
			row.behind.oldest.Seconds(), row.slow.oldest.Seconds(), row.blocking.oldest.Seconds(),
			row.behind.overdue, row.duplicates, row.breaches, row.goroutines,
			row.files, row.heap>>20, row.cpu.Seconds(), row.requests, row.lists, row.machine)
	}
	return b.Bytes()
}

// machineLoad is the load average of the last minute; 0 where there is no /proc.
func machineLoad() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var load float64
	_, _ = fmt.Sscan(string(text), &load) // 0 if it cannot be read
	return load
}

// summary has one total in each line.
func (r *result) summary() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-26s %s\n", name, fmt.Sprintf(format, args...))
	}
	overdue, requests, lists := 0, 0, 0
	var oldest time.Duration
	var heap uint64
	for _, row := range r.rows {
		overdue, oldest = max(overdue, row.behind.overdue), max(oldest, row.behind.oldest)
		requests, lists = requests+row.requests, lists+row.lists
		heap = max(heap, row.heap)
	}
	line("program", "%s", r.load.Program)
	line("load", "%d names, %d changes/s for %v, a fault every %v", r.load.Names, r.load.Rate,
		r.load.Duration, r.load.FaultEvery)
	line("changes reached", "%.0f/s", float64(r.writes)/r.load.Duration.Seconds())
	line("lost", "%d", total(r.lost))
	line("overdue at most", "%d", overdue)
	line("oldest undelivered", "%.1fs", oldest.Seconds())
	line("last state after", "%.0fs", r.settled.Seconds())
	line("breaches", "%d", r.after.Breaches)
	line("duplicates", "%d", r.after.Duplicates-r.synced.Duplicates)
	line("reconciles", "%d", r.after.Reconciles-r.synced.Reconciles)
	line("write to reconcile", "p50 %v, p99 %v, p99.9 %v", rounded(r.latency.quantile(0.5)),
		rounded(r.latency.quantile(0.99)), rounded(r.latency.quantile(0.999)))
	line("requests", "%d, %d of them list", requests, lists)
	line("heap at most", "%d MB", heap>>20)
	line("before the start", "%s", describe(r.before))
	line("synced", "%s", describe(r.synced))
	line("after the load", "%s", describe(r.after))
	line("stopped", "%s", describe(r.stopped))
	for _, example := range r.after.Examples {
		line("breach", "%s", example)
	}
	return b.String()
}
