// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"default/web":                    "default/web",
		`pods "a\b" not found`:           `pods "a\b" not found`,
		"Größe 日本 🙂":                     "Größe 日本 🙂",
		"a\n[+]forged ok":                `a\n[+]forged ok`,
		"\r\t\a":                         `\r\t\a`,
		"\x1b[31mred\x1b]0;title\x07":    `\x1b[31mred\x1b]0;title\a`,
		"csi \u009b31m, del \x7f":        `csi \u009b31m, del \x7f`,
		"line\u2028paragraph\u2029":      `line\u2028paragraph\u2029`,
		"bidi \u202egnp\u2066x\u2069":    `bidi \u202egnp\u2066x\u2069`,
		"zero\u200bwidth\ufeff":          `zero\u200bwidth\ufeff`,
		"invalid \xff\xc3(":              `invalid \xff\xc3(`,
		"replaced \ufffd":                "replaced \ufffd",
		"tag \U000e0041":                 `tag \U000e0041`,
		strings.Repeat("x", MaxRunes):    strings.Repeat("x", MaxRunes),
		strings.Repeat("\xff", MaxRunes): strings.Repeat(`\xff`, MaxRunes),
	} {
		assert.Equal(t, want, Text(in))
	}
}

func TestShort(t *testing.T) {
	for _, char := range []string{"x", "ö", "🙂", "\xff"} {
		long := strings.Repeat(char, MaxRunes+1)
		short := Short(long)
		assert.Equal(t, MaxRunes, utf8.RuneCountInString(short))
		assert.True(t, strings.HasPrefix(short, char+char))
		assert.True(t, strings.HasSuffix(short, "… ("+strconv.Itoa(len(long))+" bytes)"), short)
		assert.Equal(t, short, Short(short), "a short text stays as it is")
	}
}

func TestLines(t *testing.T) {
	assert.Equal(t, "go build: exit 1\n\tmain.go:3:\n\t\t\\x1b[31mundefined",
		Lines("go build: exit 1\nmain.go:3:\n\t\x1b[31mundefined"))
	long := Lines(strings.Repeat("x", 1<<20))
	assert.Equal(t, MaxLinesRunes, utf8.RuneCountInString(long))
	assert.Contains(t, long, "(1048576 bytes)")
}

// FuzzPrintable checks what callers rely on: the result is printable, is short, and JSON keeps its
// value.
func FuzzPrintable(f *testing.F) {
	f.Add("a")
	f.Add("\x1b\n\u2028\u202e\u009b\xff\U000e0041\ufffd")
	f.Add(strings.Repeat("ö", 2*MaxRunes))
	f.Fuzz(func(t *testing.T, s string) {
		text := Text(s)
		requirePrintable(t, text)
		require.LessOrEqual(t, utf8.RuneCountInString(text), len(`\U00000000`)*MaxRunes)

		encoded, err := json.Marshal(map[string]string{s: s})
		require.NoError(t, err)
		var want, got map[string]string
		require.NoError(t, json.Unmarshal(encoded, &want))
		printed := JSON(encoded)
		require.NoError(t, json.Unmarshal(printed, &got), "%s", printed)
		require.Equal(t, want, got)
		requirePrintable(t, string(printed))
	})
}

func requirePrintable(t *testing.T, s string) {
	t.Helper()
	require.True(t, utf8.ValidString(s))
	for _, r := range s {
		require.True(t, strconv.IsPrint(r), "%q of %q", r, s)
	}
}
