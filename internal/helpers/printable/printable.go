// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts from other sources safe to print: errors from a server, names of
// objects, keys, resource versions, names of handlers and checks.
//
//	server, object, user -> [printable] -> terminal, /readyz, /debug/informers, log
//
// Such a text may contain escape sequences that control a terminal, line breaks that forge a line
// of output, characters that reverse the direction of writing, or a megabyte of anything. Print it
// with Text, or with Lines if it may have several lines. JSON does the same for encoded JSON.
package printable

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// MaxRunes is the number of characters that Short and Text keep of a longer text.
	MaxRunes = 1024
	// MaxLinesRunes is the number of characters that Lines keeps of a longer text.
	MaxLinesRunes = 16 * MaxRunes
)

// Short returns s if it has at most MaxRunes characters. Otherwise it returns the beginning of s
// and the number of its bytes, MaxRunes characters in all.
func Short(s string) string { return truncate(s, MaxRunes) }

// Line returns s on one line: characters that strconv.IsPrint rejects are escaped as in a Go
// string. Quotes and backslashes stay, so the result is for reading, not for decoding.
func Line(s string) string { return escape(s, "", goEscape) }

// Text returns Line(Short(s)).
func Text(s string) string { return Line(Short(s)) }

// Lines returns a text that may have several lines, such as the output of a compiler. Every line
// but the first is indented by a tab, so that it cannot be taken for a line of its own.
func Lines(s string) string {
	lines := escape(truncate(s, MaxLinesRunes), "\n\t", goEscape)
	return strings.ReplaceAll(lines, "\n", "\n\t")
}

// JSON escapes the unprintable characters that encoding/json leaves in its output, such as
// U+009B, which some terminals take for ESC [. The encoded value stays the same.
func JSON(encoded []byte) []byte { return []byte(escape(string(encoded), "\n\t", jsonEscape)) }

func truncate(s string, maxRunes int) string {
	if len(s) <= maxRunes || utf8.RuneCountInString(s) <= maxRunes {
		return s
	}
	end := fmt.Sprintf("… (%d bytes)", len(s))
	keep := 0
	for range maxRunes - utf8.RuneCountInString(end) {
		_, size := utf8.DecodeRuneInString(s[keep:])
		keep += size
	}
	return s[:keep] + end
}

// escape replaces each unprintable character of s, unless it is in keep.
func escape(s, keep string, replace func(char string) string) string {
	plain := func(b byte) bool { return ' ' <= b && b <= '~' || strings.IndexByte(keep, b) >= 0 }
	first := 0
	for first < len(s) && plain(s[first]) {
		first++
	}
	if first == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:first])
	s = s[first:]
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		valid := r != utf8.RuneError || size > 1
		if valid && (strconv.IsPrint(r) || strings.ContainsRune(keep, r)) {
			b.WriteString(s[:size])
		} else {
			b.WriteString(replace(s[:size]))
		}
		s = s[size:]
	}
	return b.String()
}

// goEscape returns a character as it is written in a Go string.
func goEscape(char string) string {
	quoted := strconv.Quote(char)
	return quoted[1 : len(quoted)-1]
}

// jsonEscape returns a character as it is written in a JSON string.
func jsonEscape(char string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(char)) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	return b.String()
}
