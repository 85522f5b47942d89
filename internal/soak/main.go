// SPDX-License-Identifier: Apache-2.0

// Soak runs a program on this stack and the same program on client-go for a long time, under load
// and faults, and shows what they lose and how they grow.
//
//	make soak SOAK=30m
//
// This process has the API server, which changes its objects and fails; each program is a process
// of its own and reaches the server over HTTP. Each program has 20 handlers, of which one is slow
// and one blocks for a while, and 16 workers. The server's process compares what each handler and
// the reconciles have seen with what was written. The rows are written to a file for each program;
// the plots in docs/testing.md are drawn from the committed ones.
//
// Read programs.go (the programs), recorder.go (what is recorded in them), ledger.go (the
// comparison), writer.go and faults.go (the load), soak.go; then go test ./internal/soak.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	subjectMain()
	var l load
	flag.IntVar(&l.Names, "names", 105_000, "names of objects, of which one in 21 has no object")
	flag.IntVar(&l.Rate, "rate", 2000, "changes per second")
	flag.DurationVar(&l.Duration, "duration", 30*time.Minute, "how long the load lasts")
	flag.DurationVar(&l.FaultEvery, "fault-every", 5*time.Second, "time between two faults")
	flag.DurationVar(&l.Patience, "patience", 5*time.Minute, "how long to wait for the last states")
	selected := flag.String("programs", "ours,client-go", "what runs, side by side")
	folder := flag.String("o", filepath.Join("bin", "soak"), "where the rows are written")
	flag.Parse()
	l.Programs = strings.Split(*selected, ",")
	if err := record(l, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// record runs the load and writes a file for each program. It fails if this stack loses a change.
func record(l load, folder string) error {
	results, err := soak(l, os.Stdout)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var failed error
	for _, r := range results {
		fmt.Printf("\n%s", r.summary())
		file, err := os.Create(filepath.Join(folder, r.program+".csv"))
		if err != nil {
			return err
		}
		if err := r.writeCSV(file); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
		if r.program == "ours" && total(r.lost)+r.after.Breaches > 0 {
			failed = fmt.Errorf("changes were lost or invented: see %s", file.Name())
		}
	}
	return failed
}
