// SPDX-License-Identifier: Apache-2.0

// Informerstack runs the informer stack and prints every hop of every change, from the API server
// to the worker and back. It can also build other programs on this stack.
//
// Each command has its folder: run; serve; replay; lab/export; swap (see internal/tools/swap) and
// devtools (see compat/devtools). Read cli (exit codes, the standard output, addresses), then the
// folder of a command. The page that run and replay show is lab's.
package main

import (
	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/devtools"
	"example.com/informerstack/cmd/informerstack/lab/export"
	"example.com/informerstack/cmd/informerstack/replay"
	"example.com/informerstack/cmd/informerstack/run"
	"example.com/informerstack/cmd/informerstack/serve"
	"example.com/informerstack/cmd/informerstack/swap"

	"github.com/spf13/cobra"
)

func main() { cli.Main(commands()...) }

// commands returns the commands of the program, which can be executed once.
func commands() []*cobra.Command {
	return []*cobra.Command{
		run.NewCommand(), replay.NewCommand(), export.NewCommand(), swap.NewCommand(),
		serve.NewCommand(), devtools.NewCommand(),
	}
}
