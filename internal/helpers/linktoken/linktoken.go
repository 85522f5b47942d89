// SPDX-License-Identifier: Apache-2.0

// Package linktoken serves pages that only a holder of a printed link can see: a loopback address
// keeps other machines out, but not other users of the same one.
//
//	request for /TOKEN/path -> [linktoken] -> request for /path -> page
//
// The token is in the path, not in a cookie or a header: then one link is all that a browser or a
// command needs, relative addresses in a page keep it, and a server on another port of the same
// host never gets it. Run go test ./internal/helpers/linktoken. Goroutines: none. Locking: none.
package linktoken

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
)

// New returns a random token of 128 bits.
func New() string { return rand.Text() }

// Handler serves next below /TOKEN/, and other, with the path as it is, for any other path. The
// addresses in the pages of next must be relative, and their Referrer-Policy no-referrer.
func Handler(token string, next, other http.Handler) http.Handler {
	below := http.StripPrefix("/"+token, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			other.ServeHTTP(w, r)
		case !slash:
			w.Header().Set("Referrer-Policy", "no-referrer")
			http.Redirect(w, r, "/"+token+"/", http.StatusFound)
		default:
			below.ServeHTTP(w, r)
		}
	})
}

// Refuse answers a request without the token, and keeps no connection of its sender.
func Refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Connection", "close")
	http.Error(w, "the token is missing or wrong: use the link that the program printed",
		http.StatusUnauthorized)
}
