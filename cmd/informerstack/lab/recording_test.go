// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli/clitest"
	"example.com/informerstack/observe/trace"
)

// recordedRun returns a recording of three events, a frame each.
func recordedRun(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		l := newTestLab()
		stop := l.Record(&file)
		for i := range 3 {
			time.Sleep(2 * framePeriod)
			l.Sink(func(trace.Event) {})(trace.Event{
				Hop: trace.Store, What: "Add", Key: fmt.Sprintf("ns/%d", i),
				Detail: "</script><b>",
			})
		}
		time.Sleep(2 * framePeriod)
		synctest.Wait()
		require.NoError(t, stop())
		require.NoError(t, stop(), "a second call is a no-op")
		assert.NotContains(t, file.String(), l.hello.Token)
	})
	return file.Bytes()
}

// A recording is one hello and then frames, with every hop, and a Replay serves it as it is.
func TestRecording_RoundTrip(t *testing.T) {
	recorded := recordedRun(t)
	path := filepath.Join(t.TempDir(), "run.jsonl")
	require.NoError(t, os.WriteFile(path, recorded, 0o600))
	replay, err := NewReplay(path)
	require.NoError(t, err)

	answer := ask(replay, "GET", "/lab/recording", "", unchanged)
	assert.Equal(t, http.StatusOK, answer.Code)
	var keys []string
	for i, text := range strings.Split(strings.TrimSpace(answer.Body.String()), "\n") {
		var l line
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		assert.Equal(t, i == 0, l.Hello != nil)
		if i == 0 {
			continue
		}
		var f Frame
		require.NoError(t, json.Unmarshal(l.Frame, &f))
		for _, hop := range f.Hops {
			keys = append(keys, hop.Key)
		}
	}
	assert.Equal(t, []string{"ns/0", "ns/1", "ns/2"}, keys)

	replay.Close()
	stream := ask(replay, "GET", "/lab/events", "", unchanged).Body.String()
	assert.Contains(t, stream, `"replay":true`)
	assert.Contains(t, stream, `"writable":false`)
	assert.Equal(t, http.StatusOK, ask(replay, "GET", "/", "", unchanged).Code)
	assert.Equal(t, http.StatusNotFound,
		ask(replay, "POST", "/lab/command", "{}", unchanged).Code)
	assert.Equal(t, http.StatusForbidden,
		ask(replay, "GET", "/lab/recording", "", func(r *http.Request) { r.Host = "evil" }).Code)
}

func TestReplay_RefusesOtherFiles(t *testing.T) {
	for _, content := range []string{"", "{}", `{"frame":{}}`, "text\n", `{"hello":1}`} {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := NewReplay(path)
		assert.ErrorContains(t, err, "is not a recording", "%q", content)
	}
	_, err := NewReplay(filepath.Join(t.TempDir(), "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// The self-contained page has the recording, all modules, and a policy that matches them.
func TestClip_WritesOneFile(t *testing.T) {
	var clip Clip
	_, err := clip.ReadFrom(bytes.NewReader(append(recordedRun(t), `{"frame":{"cut`...)))
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, clip.WriteHTML(&file))
	page := file.String()

	element := func(start, end string) string {
		_, rest, found := strings.Cut(page, start)
		require.True(t, found, start)
		content, _, _ := strings.Cut(rest, end)
		return content
	}
	var run struct {
		Hello  Hello
		Frames []Frame
	}
	require.NoError(t, json.Unmarshal(clitest.Unpacked(t, file.Bytes()), &run))
	assert.Greater(t, len(run.Frames), 2)

	withoutScript := element("<noscript>", "</noscript>")
	assert.Contains(t, withoutScript, "needs JavaScript")
	assert.Contains(t, withoutScript, "需要 JavaScript")
	policy := element(`http-equiv="Content-Security-Policy" content="`, `">`)
	assert.Contains(t, policy, hash(element("<style>", "</style>")))
	code := element("<script>", "</script>")
	assert.Contains(t, policy, hash(code))
	assert.NotContains(t, policy, "connect-src", "default-src forbids every connection")
	for _, name := range []string{"app.js", "source.js", "vendor/preact.mjs"} {
		assert.Contains(t, code, fmt.Sprintf("modules[%q] = (() => {", name))
	}
	assert.NotContains(t, code, "<!--")
	assert.True(t, strings.HasSuffix(strings.TrimSpace(code), "})();"), "the script is whole")
	page = strings.Replace(page, code, "", 1)
	assert.NotRegexp(t, regexp.MustCompile(`(src|href)=`), page, "nothing is loaded")
}

func TestClip_IsBounded(t *testing.T) {
	clip := Clip{limit: 20_000}
	assert.Error(t, clip.WriteHTML(httptest.NewRecorder()), "it is empty")
	frame := []byte(`{"frame":{"mode":"` + strings.Repeat("x", 1000) + `"}}`)
	for range 100 {
		n, err := clip.Write(frame)
		require.NoError(t, err)
		require.Equal(t, len(frame), n)
	}
	assert.LessOrEqual(t, clip.size, clip.limit)
	assert.Len(t, clip.frames, 19)
}
