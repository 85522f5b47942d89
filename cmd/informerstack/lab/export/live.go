// SPDX-License-Identifier: Apache-2.0

package export

import (
	"compress/gzip"
	"context"
	_ "embed"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/lab"
)

// liveProgram is the package of the program that runs in a browser.
const liveProgram = "example.com/informerstack/cmd/informerstack/lab/live"

// worker is the script that loads the program.
//
//go:embed worker.js
var worker string

// writeProgram builds the program for the browser, and writes it with the scripts that load it. It
// needs Go, and the repository as the working directory.
func (f *folder) writeProgram(ctx context.Context) error {
	binary := filepath.Join(f.scratch, "lab.wasm")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w",
		"-o", binary, liveProgram)
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if output, err := build.CombinedOutput(); err != nil {
		return cli.Fail(cli.Failed, "lab export: --live: go build %s: %w\n%s", liveProgram, err,
			output)
	}
	if err := f.write("lab.wasm.gz", func(w io.Writer) error {
		return compress(w, binary)
	}); err != nil {
		return err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return cli.Fail(cli.Failed, "lab export: --live: go env GOROOT: %w", err)
	}
	support, err := os.ReadFile(
		filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return cli.Fail(cli.Failed, "lab export: --live: %w", err)
	}
	if err := f.writeScript("wasm_exec.js", string(support)); err != nil {
		return err
	}
	return f.writeScript("worker.js", worker)
}

// writeScript writes a script with the mark of an export.
func (f *folder) writeScript(name, code string) error {
	return f.write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, "// "+lab.EditionMark+"\n"+code)
		return err
	})
}

// compress writes a compressed file, with the mark of an export. The worker decompresses it,
// because most static web servers do not compress.
func compress(w io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	compressor, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	compressor.Comment = lab.EditionMark
	if _, err := io.Copy(compressor, file); err != nil {
		return err
	}
	return compressor.Close()
}
