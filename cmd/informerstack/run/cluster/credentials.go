// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// minCredentialLen is the length of the shortest credential that is recognized in an answer. A
// shorter text may be an ordinary word of the answer.
const minCredentialLen = 16

// discreetTransport keeps the credentials of requests out of what the program prints. A server may
// repeat them, in an error, a warning or an address: they are overwritten in all answers. A
// redirect to another host is refused, since client-go would send the credentials along.
type discreetTransport struct{ next http.RoundTripper }

func discreet(next http.RoundTripper) http.RoundTripper { return discreetTransport{next} }

// RoundTrip sends request and hides its credentials in the answer.
func (t discreetTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if from := request.Response; from != nil && from.Request.URL.Host != request.URL.Host {
		return nil, fmt.Errorf("the server redirects to another host, %s", request.URL.Host)
	}
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	for _, secret := range credentials(request.Header.Get("Authorization")) {
		hidden := strings.Repeat("*", len(secret))
		for _, values := range response.Header {
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], secret, hidden)
			}
		}
		response.Body = &overwriter{ReadCloser: response.Body, secret: []byte(secret)}
	}
	return response, nil
}

// credentials returns the secrets in an Authorization header that are long enough to be recognized,
// each as it is and as it is written in JSON, in HTML and in an address.
func credentials(header string) []string {
	scheme, secret, _ := strings.Cut(header, " ")
	secrets := []string{strings.TrimSpace(secret)}
	if strings.EqualFold(scheme, "Basic") {
		if decoded, err := base64.StdEncoding.DecodeString(secrets[0]); err == nil {
			_, password, _ := strings.Cut(string(decoded), ":")
			secrets = append(secrets, password)
		}
	}
	var forms []string
	for _, secret := range secrets {
		if len(secret) < minCredentialLen {
			continue
		}
		forms = append(forms, secret, inJSON(secret, true), inJSON(secret, false),
			html.EscapeString(secret), url.QueryEscape(secret), url.PathEscape(secret))
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// inJSON returns a text as it is in a JSON string, with &, < and > escaped if ofHTML is set, which
// Go's encoder does unless it is asked not to.
func inJSON(text string, ofHTML bool) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(ofHTML)
	_ = encoder.Encode(text) // a string can be encoded, and a Builder written
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// overwriter reads a stream, and overwrites secret with asterisks.
//
//	held is read, and not returned yet. It does not contain secret
type overwriter struct {
	io.ReadCloser
	secret []byte
	held   []byte
	err    error // of the last Read, to be returned after held
}

func (o *overwriter) Read(p []byte) (int, error) {
	for {
		ready := len(o.held)
		if o.err == nil {
			ready -= o.beginning()
		}
		if ready > 0 {
			n := copy(p, o.held[:ready])
			o.held = o.held[n:]
			return n, nil
		}
		if o.err != nil || len(p) == 0 {
			return 0, o.err
		}
		n, err := o.ReadCloser.Read(p)
		o.held, o.err = append(o.held, p[:n]...), err
		if bytes.Contains(o.held, o.secret) {
			hidden := bytes.Repeat([]byte("*"), len(o.secret))
			o.held = bytes.ReplaceAll(o.held, o.secret, hidden)
		}
	}
}

// beginning returns the length of the longest end of held that may be the beginning of the secret.
func (o *overwriter) beginning() int {
	for n := min(len(o.held), len(o.secret)-1); n > 0; n-- {
		if bytes.HasSuffix(o.held, o.secret[:n]) {
			return n
		}
	}
	return 0
}
