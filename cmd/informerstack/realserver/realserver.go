// SPDX-License-Identifier: Apache-2.0

// Package realserver runs a real kube-apiserver with its etcd for the commands serve and run.
//
//	--real -> [realserver] -> the program of the module realserver -> etcd, kube-apiserver
//
// The program of that module is built with the go command when it is first needed: so this program
// contains nothing of it.
//
// Read source.go (where the program comes from) and realserver.go; then go test -v
// ./cmd/informerstack/realserver. Goroutines: one for each Server, until its process has ended.
// Locking: none.
package realserver

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"

	"example.com/informerstack/cmd/informerstack/cli"
)

// Server is a process that runs a real API server. It ends with this process, however this process
// ends.
type Server struct {
	stdin io.Closer
	ended chan struct{}    // closed when the process has ended
	state *os.ProcessState // its result; read after ended is closed
}

// Start builds the program if it is missing or old, runs it with these flags, and returns when the
// API server is ready. It copies what the program says to stdout and stderr.
//
// Starting takes seconds, and minutes if the API server has to be built. If ctx ends before, Start
// ends the process.
func Start(ctx context.Context, flags []string, stdout, stderr io.Writer) (*Server, error) {
	program, err := build(ctx)
	if err != nil {
		return nil, cli.Fail(cli.Failed, "--real: %w", err)
	}
	return start(ctx, program, flags, stdout, stderr)
}

func start(
	ctx context.Context, program string, flags []string, stdout, stderr io.Writer,
) (*Server, error) {
	cmd := exec.Command(program, append([]string{"--until-eof"}, flags...)...)
	cmd.Stderr = stderr
	s := &Server{ended: make(chan struct{})}
	stdin, err := cmd.StdinPipe() // the kernel closes it if this process is killed
	if err != nil {
		return nil, err
	}
	s.stdin = stdin
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, cli.Fail(cli.Failed, "--real: %w", err)
	}
	ready := make(chan struct{})
	go func() {
		defer close(s.ended)
		output := bufio.NewReader(lines)
		if line, err := output.ReadString('\n'); err == nil { // the program writes it when ready
			_, _ = io.WriteString(stdout, line)
			_, _ = io.CopyN(stdout, output, int64(output.Buffered()))
			close(ready)
		}
		_, _ = io.Copy(stdout, output)
		_ = cmd.Wait()
		s.state = cmd.ProcessState
	}()
	select {
	case <-ready:
		return s, nil
	case <-ctx.Done():
		s.Close()
		return nil, cli.Fail(cli.Failed, "--real: interrupted")
	case <-s.ended: // it has said why
		code := cli.Failed
		if s.state.ExitCode() == cli.Usage {
			code = cli.Usage
		}
		return nil, cli.Fail(code, "--real: the server did not start")
	}
}

// Wait blocks until ctx is done, and returns nil, or until the server ends by itself, and returns
// an error.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.ended:
		return cli.Fail(cli.Failed, "--real: the server has ended: %s", s.state)
	}
}

// Close ends the server and waits for its end.
func (s *Server) Close() {
	_ = s.stdin.Close() // it may have ended
	<-s.ended
}
