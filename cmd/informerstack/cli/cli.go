// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands of informerstack share.
//
//	main -> [cli] -> the command that the arguments name
//
// Read exit.go (exit codes), stdout.go (the standard output and its errors), address.go (the
// addresses that are served), replacefile.go, count.go, flag.go (wrong flags) and cli.go; then go
// test -v ./cmd/informerstack. Goroutines: one, which cancels the command at a signal. Locking:
// none.
package cli

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

// Main runs the program with these commands until a signal arrives, and ends the process with the
// exit code. A second signal ends it at once.
func Main(commands ...*cobra.Command) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	os.Exit(Execute(ctx, os.Args[1:], os.Stdout, os.Stderr, commands...))
}

// Execute runs the command that args name, one of commands, until ctx is done. It returns the exit
// code. The commands are used once: cobra keeps the flags of a run in them.
func Execute(
	ctx context.Context, args []string, stdout, stderr io.Writer, commands ...*cobra.Command,
) int {
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
	root.AddCommand(commands...)
	err := root.ExecuteContext(ctx)
	err = cmp.Or(output.err(), err)
	if err == nil {
		return OK
	}
	fmt.Fprintf(stderr, "informerstack: %s\n", printable.Lines(err.Error()))
	if decided, ok := errors.AsType[*exitError](err); ok {
		return decided.code
	}
	return Usage // an error of cobra: an unknown command or argument
}
