// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/printable"
)

// Environment is the variable with the loopback address to serve on, such as 127.0.0.1:9000. If it
// is set, the program prints a link at its start. Nothing is shown without the link's random token.
const Environment = "INFORMERSTACK_DEVTOOLS"

// headerTimeout bounds the time for a request's header.
const headerTimeout = 5 * time.Second

func serveFromEnvironment() {
	if address := os.Getenv(Environment); address != "" {
		serve(address, os.Stderr)
	}
}

// serve serves on address, or on another port of its host if that one is in use: a program may have
// several processes. A program that cannot be watched runs all the same.
func serve(address string, log io.Writer) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && !ip.IsLoopback() {
		fmt.Fprintf(log, "devtools: %s=%s: want a loopback address with a port, such as "+
			"127.0.0.1:9000\n", Environment, printable.Text(address))
		return
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Fprintf(log, "devtools: %s; another port is used\n", printable.Text(err.Error()))
		if listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			fmt.Fprintf(log, "devtools: %s\n", printable.Text(err.Error()))
			return
		}
	}
	token := rand.Text()
	fmt.Fprintf(log, "devtools: http://%s/%s/debug/informers\n", listener.Addr(), token)
	server := &http.Server{Handler: withToken(token, handler), ReadHeaderTimeout: headerTimeout}
	go func() {
		if err := server.Serve(listener); err != nil {
			fmt.Fprintf(log, "devtools: %s\n", printable.Text(err.Error()))
		}
	}()
}

// withToken serves next below /TOKEN/.
func withToken(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			http.Error(w, "the token is missing or wrong: use the link that the program printed",
				http.StatusUnauthorized)
			return
		}
		http.StripPrefix("/"+token, next).ServeHTTP(w, r)
	})
}
