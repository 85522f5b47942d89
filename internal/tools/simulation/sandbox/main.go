// SPDX-License-Identifier: Apache-2.0

// Sandbox runs the tests of a package so that two runs do the same, byte for byte:
//
//	GOOS=wasip1 GOARCH=wasm go test -exec "sandbox -schedule 3" ./internal/tools/simulation
//
// The test binary is WebAssembly, so it has one thread, and everything that could differ comes from
// the sandbox: the clock advances by a millisecond each time it is read, and the random numbers
// follow from the schedule. With these numbers the Go runtime chooses among the ready cases of a
// select and where a range over a map begins, and the code its jitter. Another schedule is another
// order of what happens at the same time.
//
// With -tries, the sandbox runs one schedule after the other until one fails, and prints the output
// of the last.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

func main() {
	schedule := flag.Uint64("schedule", 0, "where the random numbers begin")
	tries := flag.Uint64("tries", 1, "how many schedules to try until one fails")
	flag.Parse()
	code, err := replay(context.Background(), os.Stdout, *schedule, *tries, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
	}
	os.Exit(code)
}

// replay runs the binary args[0] with one schedule after the other until one fails, and writes
// the output of the last run to out.
func replay(
	ctx context.Context, out io.Writer, schedule, tries uint64, args []string,
) (code int, err error) {
	if len(args) == 0 || tries == 0 {
		return 2, errors.New("want a binary to run, and at least one try")
	}
	s, err := open(ctx, args[0])
	if err != nil {
		return 2, err
	}
	defer s.runtime.Close(ctx)
	var printed bytes.Buffer
	for last := schedule + tries; schedule < last && code == 0; schedule++ {
		printed.Reset()
		if code, err = s.run(ctx, &printed, schedule, args); err != nil {
			return 2, err
		}
		fmt.Fprintf(&printed, "schedule %d: exit status %d\n", schedule, code)
	}
	_, err = printed.WriteTo(out)
	return code, err
}

// sandbox is a compiled binary, which can run many times.
type sandbox struct {
	runtime wazero.Runtime
	binary  wazero.CompiledModule
}

// open compiles a binary. That takes half a minute, so the result is kept in the user's cache.
func open(ctx context.Context, file string) (*sandbox, error) {
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(folder, "informerstack-sandbox"))
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache)
	s := &sandbox{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, s.runtime); err != nil {
		return nil, err
	}
	s.binary, err = s.runtime.CompileModule(ctx, binary)
	return s, err
}

// run runs the binary from its beginning. It can read files, write to out, and do nothing else.
func (s *sandbox) run(
	ctx context.Context, out io.Writer, schedule uint64, args []string,
) (code int, err error) {
	folder, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	config := wazero.NewModuleConfig().
		WithArgs(args...).
		WithEnv("PWD", folder).
		WithStdout(out).
		WithStderr(out).
		WithRandSource(rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, schedule)))).
		WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount("/", "/"))
	module, err := s.runtime.InstantiateModule(ctx, s.binary, config)
	if module != nil {
		defer module.Close(ctx)
	}
	if exit := new(sys.ExitError); errors.As(err, &exit) {
		return int(exit.ExitCode()), nil
	}
	return 0, err
}
