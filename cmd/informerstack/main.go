// SPDX-License-Identifier: Apache-2.0

// Informerstack runs the informer stack and prints every hop of every change, from the API server
// to the worker and back. It can also build other programs on this stack.
//
// Read flags.go and run.go (the order of the steps), cluster.go, credentials.go and resource.go
// (the server and the resource to watch), pipeline.go (how the pieces are connected), checksum.go
// (the controller's work), workload.go (the changes on the embedded server), sink.go and print.go
// (the lines), stdout.go (its errors), pace.go (--step and --slow), elect.go and shards.go (several
// processes), serve.go (metrics and health), kubectl.go (--serve), progress.go, hint.go and
// summary.go. page.go, control.go, replay.go and export.go (with folder.go) connect the page of
// package lab. swap.go (see internal/tools/swap) and devtools.go (see compat/devtools) are
// independent of the others.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/informerstack/internal/helpers/printable"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // any other failure
	exitUsage       = 2 // wrong flag, argument or selector
	exitConfig      = 3 // no usable kubeconfig
	exitUnreachable = 4 // the server does not answer
	exitUnknown     = 5 // the server has no such resource
	exitForbidden   = 6 // the server refuses access
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func fail(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// execute runs the program and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "informerstack",
		Short: "Run the Kubernetes informer stack, or build a program on it",
		Long: "informerstack shows how a change travels from a Kubernetes API server through\n" +
			"reflector, DeltaFIFO, store, handlers and workqueue to the workers of a\n" +
			"controller, and how their writes return. It can also build a program that uses\n" +
			"client-go on this stack, and show its inside.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(args)
	ctx, end := context.WithCancel(ctx)
	defer end()
	output := &standardOutput{Writer: stdout, end: end}
	root.SetOut(output)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(unknownFlag)
	root.AddCommand(newRunCommand(), newReplayCommand(), newLabCommand(),
		newSwapCommand(), newDevtoolsCommand())
	err := root.ExecuteContext(ctx)
	err = cmp.Or(output.err(), err)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "informerstack: %s\n", printable.Lines(err.Error()))
	if decided, ok := errors.AsType[*exitError](err); ok {
		return decided.code
	}
	return exitUsage // an error of cobra: an unknown command or argument
}
