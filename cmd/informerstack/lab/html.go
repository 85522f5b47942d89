// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// selfContained is the page as one file. Its parts are the policy, the title, the styles, the
// import map, the recording and the start.
const selfContained = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
%s
<style>%s</style>
<script type="importmap">%s</script>
</head>
<body>
<div id="page"></div>
<script type="application/json" id="recording">%s</script>
<script type="module">%s</script>
</body>
</html>
`

// startModule is the code that starts the page.
const startModule = `import "lab/app.js";`

var (
	relativeImport = regexp.MustCompile(`(from|import) "\./([^"]+)"`)
	sourceMap      = regexp.MustCompile(`\n//# sourceMappingURL=.*`)
)

// WriteHTML writes the clip as one HTML file, which shows the recording without a server and
// without a network.
func (c *Clip) WriteHTML(w io.Writer) error {
	recording, err := c.encode()
	if err != nil {
		return err
	}
	return writeSelfContained(w, "<title>informerstack laboratory</title>", recording)
}

// writeSelfContained writes the page as one file. head has the page's title, recording is JSON.
//
// A module in a data: URL cannot import a relative path. So each "./name.js" becomes a bare name,
// "lab/name.js", and an import map gives each bare name its data: URL. The policy names the hashes
// of the scripts and styles, and forbids every connection.
func writeSelfContained(w io.Writer, head string, recording []byte) error {
	recording = bytes.ReplaceAll(recording, []byte("<"), []byte(`\u003c`))
	imports, err := importMap()
	if err != nil {
		return err
	}
	styles, err := styleSheet()
	if err != nil {
		return err
	}
	policy := fmt.Sprintf("default-src 'none'; script-src %s %s data:; style-src %s; "+
		"img-src data:; base-uri 'none'", hash(imports), hash(startModule), hash(styles))
	_, err = fmt.Fprintf(w, selfContained, policy, head, styles, imports, recording, startModule)
	return err
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

// importMap returns the import map with the page's modules.
func importMap() (string, error) {
	imports := map[string]string{}
	err := fs.WalkDir(assets, ".", func(name string, _ fs.DirEntry, err error) error {
		if ext := path.Ext(name); err != nil || ext != ".js" && ext != ".mjs" {
			return err
		}
		code, err := fs.ReadFile(assets, name)
		if err != nil {
			return err
		}
		code = relativeImport.ReplaceAll(code, []byte(`$1 "lab/$2"`))
		code = sourceMap.ReplaceAll(code, nil)
		imports["lab/"+name] = "data:text/javascript;base64," +
			base64.StdEncoding.EncodeToString(code)
		return nil
	})
	if err != nil {
		return "", err
	}
	encoded, err := json.Marshal(map[string]map[string]string{"imports": imports})
	return string(encoded), err
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
