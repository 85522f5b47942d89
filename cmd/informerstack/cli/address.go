// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// anyPort is the address without --listen.
const anyPort = "127.0.0.1:0"

// headerTimeout bounds the time for a request's header.
const headerTimeout = 5 * time.Second

// CheckListen returns an error unless a flag's address can be served on. Nothing that is served
// asks for credentials, so only loopback addresses are allowed.
func CheckListen(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return Fail(Usage, "--%s %q: want HOST:PORT, such as 127.0.0.1:8080", flag, address)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Fail(Usage, "--%s %q: want a port from 0, for any, to 65535", flag, address)
	} else if ip := net.ParseIP(host); host != "localhost" && !ip.IsLoopback() {
		return Fail(Usage, "--%s %q: want a loopback address, such as 127.0.0.1:%d", flag, address,
			number)
	}
	return nil
}

// ListenError adds the next step to the error of opening the port of a flag.
func ListenError(flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return Fail(Failed,
			"--%s: %w (stop the program that uses it, or choose another port; 0 is any free one)",
			flag, err)
	}
	return Fail(Failed, "--%s: %w", flag, err)
}

// Listen opens the port of --listen, or any free port of loopback if address is "".
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", cmp.Or(address, anyPort))
	if err != nil {
		return nil, ListenError("listen", err)
	}
	return listener, nil
}

// Server returns a server for a port of Listen.
func Server(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
}
