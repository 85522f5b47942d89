// SPDX-License-Identifier: Apache-2.0

//go:build !js

package lab

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// pageWithoutProgram is a page with its recording. Its parts are the policy, the title, the styles,
// the recording and the script.
const pageWithoutProgram = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
%s
%s
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript. Please enable it. / 本页需要 JavaScript，请启用它。</noscript>
<script type="text/plain" id="recording">%s</script>
%s
</body>
</html>
`

// WriteHTML writes the clip as one HTML file, which shows the recording without a server and
// without a network.
func (c *Clip) WriteHTML(w io.Writer) error {
	recording, err := c.encode()
	if err != nil {
		return err
	}
	return writeSelfContained(w, "<title>informerstack laboratory</title>", recording)
}

// writeSelfContained writes the page as one file. head has the page's title, recording is JSON. The
// policy names the hashes of the script and the styles, and forbids every connection.
func writeSelfContained(w io.Writer, head string, recording []byte) error {
	code, err := script()
	if err != nil {
		return err
	}
	styles, err := styleSheet()
	if err != nil {
		return err
	}
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data:; "+
		"base-uri 'none'", hash(code), hash(styles))
	_, err = fmt.Fprintf(w, pageWithoutProgram, policy, head, "<style>"+styles+"</style>",
		pack(recording), "<script>"+code+"</script>")
	return err
}

// pack compresses a recording and encodes it as text.
func pack(recording []byte) string {
	var packed bytes.Buffer
	encoder := base64.NewEncoder(base64.StdEncoding, &packed)
	compressor, _ := gzip.NewWriterLevel(encoder, gzip.BestCompression) // a valid level
	_, _ = compressor.Write(recording)                                  // a buffer takes all
	_ = compressor.Close()
	_ = encoder.Close()
	return packed.String()
}

// encode returns the recording as JSON.
func (c *Clip) encode() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hello == nil || len(c.frames) == 0 {
		return nil, errors.New("the recording is empty")
	}
	return joined(c.hello, c.frames), nil
}

// joined joins the encoded parts, which are valid JSON.
func joined(hello []byte, frames [][]byte) []byte {
	var b bytes.Buffer
	b.WriteString(`{"hello":`)
	b.Write(hello)
	b.WriteString(`,"frames":[`)
	b.Write(bytes.Join(frames, []byte(",\n")))
	b.WriteString("]}")
	return b.Bytes()
}

// styleSheet returns the page's styles in the order of index.html.
func styleSheet() (string, error) {
	var styles []string
	for _, name := range []string{"vendor/uplot.css", "style.css", "panels.css"} {
		content, err := fs.ReadFile(assets, name)
		if err != nil {
			return "", err
		}
		styles = append(styles, string(content))
	}
	return strings.Join(styles, "\n"), nil
}

// hash returns the source of a policy that allows text inline.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
