// SPDX-License-Identifier: Apache-2.0

// Either runs tests on apitest and on a kube-apiserver, and lists where the two differ.
//
//	go test -json ──────┐
//	                    ├─> [either] -> report
//	go test -json -real ┘
//
// Read main.go, then compare.go; then go test -v ./cmd/either in realserver. Goroutines and
// locking: none.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"example.com/informerstack/realserver/either/answers"
)

const usage = `Usage: either [-run REGEXP] [-timeout DURATION] PACKAGE...

Run the tests of the packages that use package either, on apitest and then on a
kube-apiserver with etcd, and list the tests that end differently and the
requests that are answered differently. Other packages are left out.

Exit codes: 0 no test ends differently, 1 some do, 2 the tests did not run.

`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("either", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	pattern := flags.String("run", "", "run only the tests that match this `regexp`")
	timeout := flags.Duration("timeout", 30*time.Minute,
		"of each package; the first real server of a version is built, which takes minutes")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	report, err := runBoth(flags.Args(), *pattern, *timeout)
	if err != nil {
		fmt.Fprintf(stderr, "either: %v\n", err)
		return 2
	}
	fmt.Fprint(stdout, report)
	if report.testsDiffer() {
		return 1
	}
	return 0
}

// runBoth runs the tests on both servers.
func runBoth(patterns []string, pattern string, timeout time.Duration) (*report, error) {
	packages, err := users(patterns)
	if err != nil {
		return nil, err
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("no package of %q has tests that use %s", patterns, eitherPath)
	}
	args := append([]string{"test", "-json", "-count=1", "-timeout=" + timeout.String(),
		"-run=" + pattern}, packages...)
	memory, err := test(args)
	if err != nil {
		return nil, fmt.Errorf("on apitest: %w", err)
	}
	onReal, err := test(append(args, "-real"))
	if err != nil {
		return nil, fmt.Errorf("on a real server: %w", err)
	}
	return &report{memory, onReal}, nil
}

const eitherPath = "example.com/informerstack/realserver/either"

// users returns the packages with tests that import package either, directly or through others.
func users(patterns []string) (packages []string, err error) {
	format := `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`
	out, err := output(append([]string{"list", "-test", "-f", format}, patterns...))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		name, isTest := strings.CutSuffix(words[0], ".test") // its test's program
		for _, dependency := range words[1:] {
			if isTest && dependency == eitherPath {
				packages = append(packages, name)
			}
		}
	}
	return packages, nil
}

// test runs the tests, and returns their results. Tests that fail are no error.
func test(args []string) (results, error) {
	start := time.Now()
	out, err := output(args)
	r, parsed := parse(bytes.NewReader(out))
	if len(r.tests) == 0 {
		return r, errors.Join(errors.New("no test has run"), parsed, err)
	}
	r.took = time.Since(start)
	return r, parsed
}

// output runs the go command. Its error has what the command says.
func output(args []string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), answers.Variable+"=1")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, err
}
