// SPDX-License-Identifier: Apache-2.0

package cli

import "fmt"

// The exit codes.
const (
	OK          = 0
	Failed      = 1 // any other failure
	Usage       = 2 // wrong flag, argument or selector
	Config      = 3 // no usable kubeconfig
	Unreachable = 4 // the server does not answer
	Unknown     = 5 // the server has no such resource
	Forbidden   = 6 // the server refuses access
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// Fail returns an error with an exit code. The format is that of fmt.Errorf.
func Fail(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}
