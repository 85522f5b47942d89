// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/internal/helpers/printable"
)

// finishAnswers bounds the time to finish answers at the end.
const finishAnswers = time.Second

// listener opens the port of --listen, or any port for the page. It returns nil if nothing is
// served. It is called before anything else is started, because the port may be in use.
func (o *options) listener(ctx context.Context) (net.Listener, error) {
	if o.listen == "" && !o.servesPage() {
		return nil, nil
	}
	return cli.Listen(ctx, o.listen)
}

// serveHTTP serves the page and the endpoints until stop is called.
func (o *options) serveHTTP(shown *page, listener net.Listener, stderr io.Writer) (stop func()) {
	if listener == nil {
		return func() {}
	}
	server := cli.Server(shown.handler())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(stderr, "Serving ended: %s\n", printable.Text(err.Error()))
		}
	}()
	if o.listen != "" {
		fmt.Fprintf(stderr,
			"Serving /metrics, /healthz, /livez, /readyz and /debug/informers on http://%s\n",
			listener.Addr())
	}
	return func() {
		shown.close()
		ctx, cancel := context.WithTimeout(context.Background(), finishAnswers)
		defer cancel()
		_ = server.Shutdown(ctx) // Close interrupts the clients that are still reading
		_ = server.Close()
		<-ended
	}
}
