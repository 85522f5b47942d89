// SPDX-License-Identifier: Apache-2.0

// Package swap builds a program on this stack without changing a line of it.
//
// It writes a folder with two things. The first is a copy of the client-go that the program's build
// uses; the chosen packages of the copy re-export ours (reexport.go). The second is a go.work that
// uses the program, that copy and this module (workspace.go). Under that go.work, the go command
// takes the copy for k8s.io/client-go, in the program and in everything it imports. It takes every
// other module in the version of the program's own build. To undo the swap, delete the folder.
//
// Laws:
//  1. The program's files are only read.
//  2. The folder is complete or absent: an error leaves an earlier folder unchanged.
//  3. The same program, pieces and stack give the same files.
//  4. A folder is replaced only if an earlier swap wrote it, as the first line of its go.work
//     shows, and only if something in it has changed. Two swaps may write it at the same time.
//  5. The program's own build finds compiled packages of this one, and of its builds without a
//     swap: no path and no flag differ. So overlay.go compiles each package where it will be.
//
// Read swap.go, program.go (the modules of the build), pieces.go (the parts that can be swapped),
// stack.go, folder.go, copy.go and reexport.go (the copy), rewrite.go, decoding.go, devtools.go,
// requests.go and priority.go (files of it that change), workspace.go, gowork.go, gocmd.go,
// overlay.go and build.go; then go test -v ./internal/tools/swap. Goroutines: one, which reports
// while a build lasts. Locking: what a build has written so far.
package swap

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Options select the pieces to swap and the folder to write.
type Options struct {
	Program string   // a folder in the program's module
	Out     string   // the folder to write; "" is FolderName in the folder of the program's module
	Pieces  []string // names of Pieces; empty means all
	// the folder of this module's source; "" means the one in the program's build, else see
	// findStack
	Stack string
	// Devtools links compat/devtools into the program. It needs the piece cache.
	Devtools bool
	// Imports compiles all packages of the folder that the program imports, which its build needs
	// anyway, so that this is reported.
	Imports bool
	Log     io.Writer
	Width   int // of the terminal that Log writes to; 0 means that it is no terminal
}

// Result describes the written folder.
type Result struct {
	Dir      string   // Options.Program without symbolic links
	Program  string   // the root folder of the program's module
	Out      string   // the folder
	GoWork   string   // the file in it that GOWORK names
	ClientGo string   // the client-go that was copied: path@version, or its folder
	Packages []string // the swapped packages, below k8s.io/client-go
	// modules that this stack requires in other versions than the program: path@version of the
	// program
	Pinned []string
}

// Swap writes the folder, compiles the swapped packages under it, and only then moves it to its
// place. An error in the options or the program is a *BadInputError, and nothing is written.
func Swap(ctx context.Context, options Options) (*Result, error) {
	pieces, err := choose(options.Pieces)
	if err != nil {
		return nil, err
	}
	hasCache := slices.ContainsFunc(pieces, func(p Piece) bool { return p.Name == cachePiece })
	if options.Devtools && !hasCache {
		return nil, bad("devtools need the piece %s", cachePiece)
	}
	program, err := inspect(ctx, options.Program)
	if err != nil {
		return nil, err
	}
	stack, err := findStack(ctx, program, options.Stack)
	if err != nil {
		return nil, err
	}
	exports, err := load(stack, pieces)
	if err != nil {
		return nil, err
	}
	if err := program.covered(exports); err != nil {
		return nil, err
	}
	f, err := openFolder(program, stack, options.Out)
	if err != nil {
		return nil, err
	}
	defer f.abandon()

	fmt.Fprintf(options.Log, "copying %s to %s\n", program.clientGo,
		filepath.Join(f.path, copyName))
	if err := f.copyClientGo(program, exports); err != nil {
		return nil, err
	}
	if hasCache {
		f.addDecoding(options.Log)
	}
	if options.Devtools {
		if err := f.addDevtools(); err != nil {
			return nil, err
		}
		f.addRequests(options.Log)
		f.addPriorityQueue(ctx, program, options.Log)
	}
	space, err := newWorkspace(program, stack, f)
	if err != nil {
		return nil, err
	}
	pinned, err := space.write(ctx)
	if err != nil {
		return nil, err
	}
	result := &Result{
		Dir: program.dir, Program: program.root, Out: f.path,
		GoWork:   filepath.Join(f.path, workFile),
		ClientGo: program.clientGo.String(), Pinned: pinned,
	}
	var swapped []string
	for _, e := range exports {
		result.Packages = append(result.Packages, e.clientGo)
		swapped = append(swapped, path.Join(clientGoPath, e.clientGo))
	}
	fmt.Fprintf(options.Log, "compiling %s\n", strings.Join(result.Packages, ", "))
	err = space.compile(ctx, swapped, options.Imports, reports{options.Log, options.Width})
	if err != nil {
		return nil, err
	}
	return result, f.commit()
}

// BadInputError is an error in the options or the program, with its remedy.
type BadInputError struct{ message string }

// Error is the message.
func (e *BadInputError) Error() string { return e.message }

func bad(format string, args ...any) error {
	return &BadInputError{fmt.Sprintf(format, args...)}
}
