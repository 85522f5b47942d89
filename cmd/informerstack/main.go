// SPDX-License-Identifier: Apache-2.0

// Informerstack shows the informer stack at work: every hop of every change, from the API server to the worker and back.
// And it builds other people's programs on this stack.
//
// Read run.go (flags and order of things), cluster.go and resource.go (where to watch, and what), pipeline.go (the stack,
// put together), checksum.go (what the controller does), workload.go (the life of the embedded server), serve.go (what is
// served about all of this), progress.go and summary.go. swap.go stands alone: see internal/swap.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // something else went wrong
	exitUsage       = 2 // a flag or a selector is wrong
	exitConfig      = 3 // no such kubeconfig, or it cannot be used
	exitUnreachable = 4 // the server does not answer
	exitUnknown     = 5 // the server has no such resource
	exitForbidden   = 6 // the server does not let us
)

// exitError is an error that decides the exit code.
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
		Short: "The Kubernetes informer stack at work",
		Long: "informerstack shows how a change travels from a Kubernetes API server through reflector, DeltaFIFO, store,\n" +
			"handlers and workqueue to the workers of a controller, and how their writes go back. It also builds programs that use\n" +
			"client-go on this stack.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fail(exitUsage, "%w", err)
	})
	root.AddCommand(newRunCommand(), newSwapCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "informerstack: %v\n", err)
	if decided, ok := errors.AsType[*exitError](err); ok {
		return decided.code
	}
	return exitUsage // cobra's own: an unknown command or argument
}
