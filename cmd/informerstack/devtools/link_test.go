// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/helpers/linktoken"
)

// The link may come from the environment or the standard input, where no other user reads its
// token. In an argument, it gets a warning, which does not repeat it.
func TestLink_KeepsTheTokenOutOfTheArguments(t *testing.T) {
	t.Setenv(LinkVariable, "")
	secret := linktoken.New()
	link := "http://127.0.0.1:9000/" + secret + "/debug/informers"
	var warned bytes.Buffer
	of := func(stdin string, args ...string) string {
		t.Helper()
		warned.Reset()
		got, err := linkOf(args, strings.NewReader(stdin), &warned)
		require.NoError(t, err)
		return got
	}
	assert.Equal(t, link, of(link+"\n", "-"))
	assert.Equal(t, link, of("devtools: "+link+"\r\nmore\n", "-"), "the line of the program")
	assert.Equal(t, link, of(link, "-"))
	assert.Equal(t, "127.0.0.1:8080", of("", "127.0.0.1:8080"))
	assert.Empty(t, warned.String())
	assert.Equal(t, link, of("", link))
	assert.Contains(t, warned.String(), "Every user of this machine can read the token")
	assert.NotContains(t, warned.String(), secret)
	t.Setenv(LinkVariable, link)
	assert.Equal(t, link, of("ignored"))
	assert.Empty(t, warned.String())
	assert.Equal(t, "argument", of("", "argument"))
}

func TestLink_IsMissing(t *testing.T) {
	t.Setenv(LinkVariable, "")
	for want, stdin := range map[string]io.Reader{
		"the first line of the standard input has no link": strings.NewReader("\nhttp://a\n"),
		"read the link from the standard input: broken":    iotest.ErrReader(errors.New("broken")),
	} {
		_, err := linkOf([]string{"-"}, stdin, io.Discard)
		assert.ErrorContains(t, err, want)
	}
	_, err := linkOf(nil, strings.NewReader(""), io.Discard)
	assert.ErrorContains(t, err, "want a LINK, or the variable INFORMERSTACK_LINK")
}

// An error about a link does not repeat it: it may have a token.
func TestLink_ErrorsDoNotRepeatIt(t *testing.T) {
	secret := linktoken.New()
	for _, link := range []string{"http://a:b:c/", "ftp://a/", "http://a b/", "http:///",
		"http://%zz/"} {
		_, err := pageURL(link+secret, question{}, "text", false)
		require.Error(t, err, link)
		assert.NotContains(t, err.Error(), secret)
	}
}
