// SPDX-License-Identifier: Apache-2.0

// Soak runs a program on this stack and the same program on client-go for a long time, under load
// and faults, and shows what they lose and how they grow.
//
//	make soak SOAK=30m
//
// This process has the API server, which changes its objects and fails. A program is a process of
// its own and reaches the server over HTTP. It has 20 handlers, of which one is slow and one blocks
// for a while, and 16 workers. The server's process compares the states that each handler and the
// reconciles have seen with those that were written, and writes a file of samples. The plots in
// docs/testing.md are drawn from the files in testdata.
//
// Read programs.go (the programs), recorder.go (what is recorded in them), ledger.go (the
// comparison), writer.go and faults.go (the load), soak.go; then go test ./internal/soak.
package main

import (
	"errors"
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
	flag.DurationVar(&l.Patience, "patience", 5*time.Minute, "how long to wait for a state")
	selected := flag.String("programs", "ours,client-go", "what runs, one after the other")
	folder := flag.String("o", filepath.Join("bin", "soak"), "where the rows are written")
	flag.Parse()
	var failed error
	for _, l.Program = range strings.Split(*selected, ",") {
		failed = errors.Join(failed, record(l, *folder))
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, "soak:", failed)
		os.Exit(1)
	}
}

// record runs the load and writes the file of the program. It fails if this stack loses a change.
func record(l load, folder string) error {
	r, err := soak(l, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\n", r.summary())
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	name := filepath.Join(folder, l.Program+".csv")
	if err := os.WriteFile(name, r.csv(), 0o644); err != nil {
		return err
	}
	if l.Program == "ours" && total(r.lost)+r.after.Breaches > 0 {
		return fmt.Errorf("changes were lost or invented: see %s", name)
	}
	return nil
}
