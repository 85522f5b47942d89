// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A credential is overwritten wherever the answer is cut into reads.
func TestOverwriter(t *testing.T) {
	const secret = "abcabcabd"
	for stream, want := range map[string]string{
		"":                          "",
		"abc":                       "abc",
		secret:                      "*********",
		"x" + secret + secret + "y": "x******************y",
		"abcabcabcabd" + "abcabc":   "abc*********abcabc",
		secret[:8] + secret:         "abcabcab*********",
	} {
		for _, cut := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader,
			iotest.DataErrReader,
		} {
			for _, size := range []int{1, 5, 100} {
				in := io.NopCloser(cut(strings.NewReader(stream)))
				o := &overwriter{ReadCloser: in, secret: []byte(secret)}
				var read bytes.Buffer
				_, err := io.CopyBuffer(struct{ io.Writer }{&read}, o, make([]byte, size))
				require.NoError(t, err)
				require.Equal(t, want, read.String(), "%d", size)
			}
		}
	}
}

// All that can be returned is returned before more is read, which may take as long as a watch.
func TestOverwriter_HoldsNothingBack(t *testing.T) {
	in, out := io.Pipe()
	o := &overwriter{ReadCloser: in, secret: []byte("abcabcabd")}
	go func() {
		_, _ = io.WriteString(out, "abcabc")
		_, _ = io.WriteString(out, "{event}")
	}()
	read := make([]byte, len("abcabc{event}"))
	for n := 0; n < len(read); { // nothing ends the stream
		more, err := o.Read(read[n:min(n+7, len(read))])
		require.NoError(t, err)
		n += more
	}
	require.Equal(t, "abcabc{event}", string(read))
}

// A password is overwritten as a server may write it: Go's encoder escapes &, < and > in JSON.
func TestDiscreet_EveryForm(t *testing.T) {
	const password = `se&cr<et>"with\odd%characters`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		w.Header().Set("Warning", "299 - "+url.QueryEscape(given))
		_ = json.NewEncoder(w).Encode(given)
		plain := json.NewEncoder(w)
		plain.SetEscapeHTML(false)
		_ = plain.Encode(given)
		_, _ = fmt.Fprintln(w, given, html.EscapeString(given), url.PathEscape(given))
	}))
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	request.SetBasicAuth("admin", password)
	answer, err := discreet(http.DefaultTransport).RoundTrip(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Regexp(t, `^"\*+"\n"\*+"\n\*+ \*+ \*+\n$`, string(text))
	require.Regexp(t, `^299 - \*+$`, answer.Header.Get("Warning"))
}
