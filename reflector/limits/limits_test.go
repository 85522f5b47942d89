// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// respond is a transport with one answer.
type respond http.Response

func (r *respond) RoundTrip(*http.Request) (*http.Response, error) {
	response := http.Response(*r)
	return &response, nil
}

// through returns what a client reads of an answer through limits.
func through(
	t *testing.T, l Answers, path string, code int, contentType, body string,
) (string, error) {
	t.Helper()
	transport := l.Wrap(&respond{
		StatusCode: code, Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(iotest.HalfReader(strings.NewReader(body))),
	})
	request, err := http.NewRequest(http.MethodGet, "http://server"+path, nil)
	require.NoError(t, err)
	response, err := transport.RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return string(read), err
}

// A limit holds for one event, not for a watch, wherever its brackets and quotes are.
func TestLimits_Events(t *testing.T) {
	const limit = 24
	exact := `{"a":["}]",{"\"\\":"x"}]}` // one byte more
	for name, test := range map[string]struct {
		body string
		fits bool
	}{
		"many":                    {strings.Repeat(`{"a":[1,{},"}"]}`+"\n", 1000), true},
		"an escaped quote":        {strings.Repeat(`{"a":"\"}{{{","b":"\\"}`, 1000), true},
		"of the limit":            {strings.Replace(exact, "x", "", 1), true},
		"one byte more":           {exact, false},
		"more blanks":             {`{}` + strings.Repeat("\n", limit+1) + `{}`, false},
		"blanks inside":           {`{` + strings.Repeat("\n", limit) + `}`, false},
		"no object":               {strings.Repeat("1 ", limit), false},
		"a string without end":    {`{"a":"` + strings.Repeat("}", limit), false},
		"brackets without a pair": {strings.Repeat("]", limit+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/pods?watch=true", "/pods?a=b&watch=1"} {
				read, err := through(t, Answers{EventBytes: limit}, path, 200,
					"application/json;stream=watch", test.body)
				if test.fits {
					require.NoError(t, err)
					require.Equal(t, test.body, read)
					continue
				}
				require.EqualError(t, err,
					"answer of the server is too long: see limits.Answers.EventBytes")
			}
		})
	}
}

// Each limit bounds answers of its kind alone, and 0 bounds nothing.
func TestLimits_Kinds(t *testing.T) {
	const body, limit = "[0123456789]", 5
	for name, test := range map[string]struct {
		path, contentType string
		code              int
		limits            Answers
		read, err         string
	}{
		"list": {"/", "application/json", 200, Answers{AnswerBytes: limit}, "",
			"answer of the server is too long: see limits.Answers.AnswerBytes"},
		"list that fits": {"/", "", 200, Answers{AnswerBytes: int64(len(body))}, body, ""},
		"list, no limit": {"/", "", 200, Answers{ErrorBytes: limit, EventBytes: limit}, body, ""},
		"error":          {"/", "", 400, Answers{ErrorBytes: limit}, body[:limit], ""},
		"error, no limit": {"/", "", 500,
			Answers{AnswerBytes: limit, EventBytes: limit}, body, ""},
		"error of a watch": {"/?watch=true", "", 410, Answers{ErrorBytes: limit}, body[:limit], ""},
		"watch, no limit":  {"/?watch=1", "", 200, Answers{AnswerBytes: limit}, body, ""},
		"watch in protobuf": {"/?watch=1", "application/vnd.kubernetes.protobuf;stream=watch", 200,
			Answers{EventBytes: limit}, body, ""},
		"an upgrade": {"/", "", 101, Answers{limit, limit, limit}, body, ""},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := through(t, test.limits, test.path, test.code, test.contentType, body)
			require.Equal(t, test.read, read)
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.err)
		})
	}
}
