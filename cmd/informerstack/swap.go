// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"example.com/informerstack/internal/swap"
)

const swapHelp = `swap writes a folder with a copy of the client-go that the program in MODULE-DIR is built with, in which the chosen
packages re-export this stack, and a go.work that uses the program, the copy and this stack. Under that go.work every
go command builds the program, and all it imports, on this stack: not a line of the program changes.

  GOWORK=$PWD/.informerstack/go.work go test ./...

The program keeps its own version of every other module. Supported are client-go 0.36.x and 0.37.x, as a version or as
what a replace line names. To undo is to delete the folder; to swap again writes it anew.

Pieces:
  cache           tools/cache with synctrack and testing, and tools/watch, which is made of it
  workqueue       util/workqueue
  leaderelection  tools/leaderelection with resourcelock`

const swapExamples = `  # a program's own tests, on this stack
  informerstack swap ~/src/my-controller -- go test ./...

  # its workqueue alone
  informerstack swap --pieces workqueue`

// newSwapCommand is informerstack swap.
func newSwapCommand() *cobra.Command {
	var options swap.Options
	cmd := &cobra.Command{
		Use:     "swap [flags] [MODULE-DIR] [-- COMMAND [ARGUMENT ...]]",
		Short:   "Build a program that uses client-go on this stack, not a line of it changed",
		Long:    swapHelp,
		Example: swapExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			var command []string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, command = args[:dash], args[dash:]
				if len(command) == 0 {
					return fail(exitUsage, "there is no command after --")
				}
			}
			if len(args) > 1 {
				return fail(exitUsage, "swap takes one MODULE-DIR, and a command after --; got %s", strings.Join(args, " "))
			}
			options.Program = "."
			if len(args) == 1 {
				options.Program = args[0]
			}
			options.Log = cmd.ErrOrStderr()
			return swapProgram(cmd.Context(), options, command, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&options.Pieces, "pieces", nil, "what to swap: some of "+strings.Join(swap.PieceNames(), ",")+" (default all)")
	flags.StringVar(&options.Out, "out", "", "the folder to write (default "+swap.FolderName+" in the program's module)")
	flags.StringVar(&options.Stack, "stack", "", "the folder of this stack's source (default where this program was built from)")
	return cmd
}

// swapProgram swaps, says how to use it, and runs command under it. What the command prints is all there is on stdout.
func swapProgram(ctx context.Context, options swap.Options, command []string, stdout io.Writer) error {
	result, err := swap.Swap(ctx, options)
	if err != nil {
		if _, bad := errors.AsType[*swap.BadInputError](err); bad {
			return fail(exitUsage, "%w", err)
		}
		return fail(exitFailed, "%w", err)
	}
	if len(command) > 0 {
		return runSwapped(ctx, result, command, stdout, options.Log)
	}
	fmt.Fprintf(stdout, "%s of %s on this stack: %s\n", result.ClientGo, result.Program, strings.Join(result.Packages, ", "))
	if n := len(result.Pinned); n > 0 {
		fmt.Fprintf(stdout, "%d other modules kept at the program's versions: %s has them\n", n, result.GoWork)
	}
	fmt.Fprintf(stdout, "\nbuild with it:\n  cd %s\n  GOWORK=%s go build ./...\n\nundo:\n  rm -r %s\n", result.Program, result.GoWork, result.Out)
	return nil
}

// runSwapped runs a command in the program's folder, under the swap's go.work. Its exit code becomes ours.
func runSwapped(ctx context.Context, result *swap.Result, command []string, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = result.Program
	cmd.Env = append(os.Environ(), "GOWORK="+result.GoWork)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return fail(exit.ExitCode(), "%s: %w", strings.Join(command, " "), err)
	}
	if err != nil {
		return fail(exitFailed, "run %s: %w", strings.Join(command, " "), err)
	}
	return nil
}
