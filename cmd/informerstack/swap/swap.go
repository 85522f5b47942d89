// SPDX-License-Identifier: Apache-2.0

// Package swap is the command informerstack swap: it builds a program that uses client-go on this
// stack, and may run it.
//
//	arguments -> [swap] -> internal/tools/swap -> the program
//
// Read swap.go; then go test -v ./cmd/informerstack/swap. Goroutines: one, which forwards signals
// to the program. Locking: none.
package swap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/internal/tools/swap"
)

const swapHelp = `
swap writes a folder with two things: a copy of the client-go that the program in MODULE-DIR is
built with, in which the chosen packages re-export this stack; and a go.work that uses the program,
the copy and this stack. With that go.work, every go command builds the program and all its imports
on this stack, without a change to the program:

  GOWORK=$PWD/.informerstack/go.work go test ./...

The program keeps its own version of every other module. client-go 0.36.x and 0.37.x are supported,
also by a replace line. Delete the folder to undo the swap; swap again to renew it.

Pieces:
  cache           tools/cache with synctrack and testing, and tools/watch, which depends on it;
                  this stack decodes the LISTs and WATCHes of informers, unless
                  INFORMERSTACK_DECODER=client-go is in the program's environment;
                  with INFORMERSTACK_OUTAGE=group there, and one API server, informers
                  are usually current within seconds after an outage
  workqueue       util/workqueue
  leaderelection  tools/leaderelection with resourcelock`

const swapExamples = `
  # run a program's own tests on this stack
  informerstack swap ~/src/my-controller -- go test ./...

  # run it, and ask it why a key is not being reconciled
  informerstack swap --devtools 127.0.0.1:9000 ~/src/my-controller -- go run ./cmd/manager
  export INFORMERSTACK_LINK=...   # in another terminal: the link that the program has printed
  informerstack devtools --why default/settings-1

  # swap only its workqueue
  informerstack swap --pieces workqueue`

// NewCommand returns the command informerstack swap.
func NewCommand() *cobra.Command {
	var options swap.Options
	var address string
	cmd := &cobra.Command{
		Use:     "swap [flags] [MODULE-DIR] [-- COMMAND [ARGUMENT ...]]",
		Short:   "Build a program that uses client-go on this stack, without changing it",
		Long:    strings.TrimSpace(swapHelp),
		Example: strings.Trim(swapExamples, "\n"),
		RunE: func(cmd *cobra.Command, args []string) error {
			program, command, err := parseSwap(cmd, args)
			if err != nil {
				return cli.Fail(cli.Usage, "%w", err)
			}
			if options.Devtools = address != ""; options.Devtools {
				if err := checkAddress(address); err != nil {
					return err
				}
			}
			options.Program, options.Log = program, cmd.ErrOrStderr()
			options.Width, options.Imports = logWidth(options.Log), len(command) > 0
			return swapProgram(cmd.Context(), options, address, command, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&options.Pieces, "pieces", nil,
		"the pieces to swap, of "+strings.Join(swap.PieceNames(), ",")+" (default all)")
	flags.StringVar(&options.Out, "out", "",
		"the folder to write (default "+swap.FolderName+" in the program's module)")
	flags.StringVar(&address, "devtools", "",
		"make the program show its inside on this loopback `address`: see informerstack devtools")
	flags.StringVar(&options.Stack, "stack", "",
		"the folder of this stack's source (default: the one that the program is built with, "+
			"else the one that informerstack was built from)")
	return cmd
}

// checkAddress returns an error unless devtools can be served on the address. If that was left out,
// the folder of the program takes its place.
func checkAddress(address string) error {
	err := cli.CheckListen("devtools", address)
	if info, missing := os.Stat(address); err != nil && missing == nil && info.IsDir() {
		return cli.Fail(cli.Usage, "--devtools %q is a folder: want an address before it, such as "+
			"--devtools 127.0.0.1:9000 %s", address, quoted(address))
	}
	return err
}

// usualWidth is the width of a terminal that does not know its own.
const usualWidth = 80

// logWidth is the width of the terminal that log is, or 0.
func logWidth(log io.Writer) int {
	width, isTerminal := cli.Terminal(log)
	if isTerminal {
		return cmp.Or(width, usualWidth)
	}
	return 0
}

// parseSwap checks the arguments. It rejects empty values of flags: they come from shell variables
// that are not set.
func parseSwap(cmd *cobra.Command, args []string) (program string, command []string, err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if value := f.Value.String(); value == "" || value == "[]" {
			err = fmt.Errorf("--%s is empty", f.Name)
		}
	})
	if err != nil {
		return "", nil, err
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, command = args[:dash], args[dash:]
		if len(command) == 0 {
			return "", nil, errors.New("there is no command after --")
		}
		if filepath.Base(command[0]) == command[0] { // a path is relative to the folder it runs in
			if _, err := exec.LookPath(command[0]); err != nil {
				return "", nil, err
			}
		}
	}
	switch {
	case len(args) > 1:
		return "", nil, fmt.Errorf("swap takes one MODULE-DIR, and a command after --; got %s",
			strings.Join(args, " "))
	case len(args) == 0:
		return ".", command, nil
	case args[0] == "":
		return "", nil, errors.New("MODULE-DIR is empty")
	}
	return args[0], command, nil
}

// swapProgram swaps, and prints how to use the result. If there is a command, it runs the command
// instead, and only the command writes to stdout. The address is that of the devtools, if any.
func swapProgram(
	ctx context.Context, options swap.Options, address string, command []string, stdout io.Writer,
) error {
	result, err := swap.Swap(ctx, options)
	if err != nil {
		if ctx.Err() != nil {
			return cli.Fail(cli.Failed, "interrupted: nothing was written")
		}
		if _, bad := errors.AsType[*swap.BadInputError](err); bad {
			return cli.Fail(cli.Usage, "%w", err)
		}
		return cli.Fail(cli.Failed, "%w", err)
	}
	env := []string{"GOWORK=" + result.GoWork}
	if address != "" {
		env = append(env, swap.DevtoolsVariable+"="+address)
	}
	if len(command) > 0 {
		return runSwapped(ctx, result, env, command, stdout, options.Log)
	}
	fmt.Fprintf(stdout, "swapped in %s of %s: %s\n",
		result.ClientGo, result.Program, strings.Join(result.Packages, ", "))
	if n := len(result.Pinned); n > 0 {
		fmt.Fprintf(stdout, "%s at the program's versions, listed in %s\n",
			cli.Count(n, "other module"), result.GoWork)
	}
	fmt.Fprintf(stdout,
		"\nbuild with it:\n  cd %s\n  GOWORK=%s go build ./...\n\nundo:\n  rm -r %s\n",
		quoted(result.Program), quoted(result.GoWork), quoted(result.Out))
	if address != "" {
		fmt.Fprintf(stdout, "\nrun the program with:\n  %s=%s\n", swap.DevtoolsVariable, address)
	}
	return nil
}

// quoted returns a path as a word for a shell.
func quoted(path string) string {
	if regexp.MustCompile(`^[\w@%+=:,./-]+$`).MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// runSwapped runs a command in MODULE-DIR with variables of the swap. The command's exit code
// becomes that of the error.
func runSwapped(
	ctx context.Context, result *swap.Result, env, command []string, stdout, stderr io.Writer,
) error {
	signals := make(chan os.Signal, 8) // buffers signals that arrive during forward
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer close(signals)
	defer signal.Stop(signals)
	if ctx.Err() != nil {
		return cli.Fail(cli.Failed, "interrupted")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = result.Dir
	cmd.Env = append(cmd.Environ(), env...)
	if file, ok := cli.File(stdout); ok {
		stdout = file // the command's own
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	err := cmd.Start()
	if err == nil {
		go forward(signals, cmd.Process)
		err = cmd.Wait()
	}
	if err != nil {
		return cli.Fail(exitCode(err), "%s: %w", strings.Join(command, " "), err)
	}
	return nil
}

// forward sends SIGTERM on to the process. The terminal sends Ctrl-C and its hang-up to the whole
// process group, so the process receives those itself.
func forward(signals <-chan os.Signal, process *os.Process) {
	for received := range signals {
		if received == syscall.SIGTERM {
			_ = process.Signal(received) // it may have ended
		}
	}
}

// exitCode returns the exit code that a shell reports for the error of a command.
func exitCode(err error) int {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return cli.Failed
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
