// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

// editionPage is the content of a page of the static edition.
type editionPage struct {
	Files   string
	Made    string
	Hello   Hello
	Lesson  string
	Lessons []struct {
		ID    string
		Title map[string]string
		Steps []map[string]json.RawMessage
		Links []map[string]any
	}
	Starts []int
	Frames []map[string]json.RawMessage
}

var embeddedRecording = regexp.MustCompile(`(?s)id="recording">(.*?)</script>`)

// pageOf writes a recorded lesson and reads its page.
func pageOf(t *testing.T, r *RecordedLesson, edition ...string) (p editionPage, page []byte) {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, r.WriteHTML(&file, Edition{Lessons: edition}))
	require.NoError(t, json.Unmarshal(clitest.Unpacked(t, file.Bytes()), &p))
	return p, file.Bytes()
}

// complete returns the complete frames of a page, as its source does.
func (p editionPage) complete(t *testing.T) []Frame {
	t.Helper()
	last := map[string]json.RawMessage{}
	frames := make([]Frame, len(p.Frames))
	for i, changed := range p.Frames {
		maps.Copy(last, changed)
		encoded, err := json.Marshal(last)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(encoded, &frames[i]))
	}
	return frames
}

// Each lesson is recorded with every step to its end, and its page is not large.
func TestEdition_HasEveryStep(t *testing.T) {
	edition := LessonIDs()
	for i, l := range lessons {
		chapter(t, l.ID, func(t *testing.T, w *world) {
			w.writer = true
			recorded, err := w.lab.RecordLesson(w.t.Context(), l.ID, 0)
			require.NoError(t, err)
			p, page := pageOf(t, recorded, edition...)
			assert.Less(t, len(page), 100<<10)
			assert.Contains(t, string(page[:1<<10]), EditionMark)
			assert.Empty(t, p.Hello.Token)
			assert.False(t, p.Hello.Writable)
			assert.Equal(t, l.ID, p.Lesson)
			require.Len(t, p.Lessons, len(edition))
			assert.Len(t, p.Lessons[i].Steps, len(l.Steps))
			assert.NotEmpty(t, p.Lessons[i].Links)
			assert.NotContains(t, p.Lessons[i].Steps[0], "script")
			assert.Empty(t, p.Lessons[(i+1)%len(edition)].Steps, "the texts of another lesson")

			frames := p.complete(t)
			require.Len(t, p.Starts, len(l.Steps))
			assert.Equal(t, 1, p.Starts[0])
			assert.Nil(t, frames[0].Lesson)
			assert.Empty(t, frames[0].Hops)
			for step := range l.Steps {
				end := len(frames)
				if step+1 < len(l.Steps) {
					end = p.Starts[step+1]
				}
				var stops []Frame
				for _, f := range frames[p.Starts[step]:end] {
					if stop := f.Lesson.stopped(); stop != nil && stop.N > len(stops) {
						stops = append(stops, f)
					}
				}
				w.hasProven(l.Steps[step], stops)
				last := frames[end-1]
				assert.Equal(t, &LessonView{
					ID: l.ID, Step: step, State: "done", Watch: l.Steps[step].Watch,
				}, last.Lesson)
			}
		})
	}
}

// stopped is the stop of a lesson, or nil.
func (l *LessonView) stopped() *StopView {
	if l == nil {
		return nil
	}
	return l.Stop
}

// A reader sees items in the queues, and no hop is missing or comes twice.
func TestEdition_ShowsEachState(t *testing.T) {
	story(t, func(w *world) {
		recorded, err := w.lab.RecordLesson(w.t.Context(), "onadd", EditionDelay)
		require.NoError(t, err)
		p, _ := pageOf(t, recorded, "onadd")
		queued, working, hops, n := 0, 0, 0, 0
		for i, f := range p.complete(t)[1:] {
			queued += f.Queue.Keys
			working += len(f.Workqueue.Queue)
			for _, hop := range f.Hops {
				hops++
				assert.Greater(t, hop.N, n, "frame %d", i+1)
				n = hop.N
			}
		}
		assert.Greater(t, queued, 1)
		assert.Greater(t, working, 1)
		frames := p.complete(t)
		first, last := frames[0].Counters, frames[len(frames)-1].Counters
		assert.Equal(t, last.Shown-first.Shown, hops)
	})
}

// planted plays a script as the second step of the lesson "planted".
func planted(t *testing.T, script string) {
	t.Helper()
	var step lessonStep
	require.NoError(t, json.Unmarshal([]byte(`{"script":`+script+`}`), &step))
	before := lessons
	lessons = append(before[:len(before):len(before)], lesson{
		ID: "planted", Steps: []lessonStep{{}, step},
	})
	t.Cleanup(func() { lessons = before })
}

// A step that fails or does not end ends the recording, with the lesson and the step in the error.
func TestEdition_NamesTheStepThatFails(t *testing.T) {
	none := `[{"expect":{"what":"none"}}]`
	for _, test := range []struct {
		script string
		delay  time.Duration
		want   string
	}{
		{`[{"do":"change","key":"default/none"}]`, 0, "not found"},
		{none, 0, "has not happened within 30s"},
		{none, EditionDelay, "no end within 2m0s"},
		{`[{"stop":{"says":[{"if":[{"path":"store.objects","is":-1}],"en":"a","zh":"a"}]}}]`, 0,
			"stop 1: its frame proves no sentence"},
	} {
		t.Run(test.want, func(t *testing.T) {
			planted(t, test.script)
			story(t, func(w *world) {
				_, err := w.lab.RecordLesson(w.t.Context(), "planted", test.delay)
				assert.ErrorContains(t, err, "lesson planted, step 2: ")
				assert.ErrorContains(t, err, test.want)
			})
		})
	}
	story(t, func(w *world) {
		_, err := w.lab.RecordLesson(w.t.Context(), "none", 0)
		assert.ErrorContains(t, err, `no lesson "none"`)
	})
}

// The end of the context ends the recording.
func TestEdition_CanBeStopped(t *testing.T) {
	story(t, func(w *world) {
		ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
		defer cancel()
		_, err := w.lab.RecordLesson(ctx, "onadd", time.Second)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "lesson onadd, step 1")
	})
}

// The list of an edition has a link to each page in each language, and loads nothing.
func TestEdition_ListsItsLessons(t *testing.T) {
	files := map[string]string{}
	e := Edition{Lessons: []string{"resume", "lease"}}
	require.NoError(t, e.WriteShared(func(name string, content []byte) error {
		files[name] = string(content)
		return nil
	}))
	assert.Len(t, files, 3)
	for _, content := range files {
		assert.Contains(t, content[:1<<10], EditionMark)
	}
	page := files["index.html"]
	for _, want := range []string{
		`href="resume.html#lang=en"`, `href="lease.html#lang=zh" lang="zh-Hans"`,
		"default-src &#39;none&#39;",
	} {
		assert.Contains(t, page, want)
	}
	style := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page)
	assert.Contains(t, page, regexp.MustCompile(`^'|'$`).ReplaceAllString(hash(style[1]), ""))
	assert.NotContains(t, page, "onadd")
	assert.NotContains(t, page, "<script")
}

// committedEdition is the edition that the repository has, as make lessons writes it.
var committedEdition = filepath.Join("..", "..", "..", "docs", "lessons")

// The edition in docs/lessons has the present page, texts, steps and fields. Only the recorded
// values differ from one export to the next.
func TestEdition_CommittedIsThePresentOne(t *testing.T) {
	e := Edition{Lessons: LessonIDs(), Files: "../../"}
	want := map[string]bool{}
	require.NoError(t, e.WriteShared(func(name string, content []byte) error {
		want[name] = true
		committed, err := os.ReadFile(filepath.Join(committedEdition, name))
		assert.NoError(t, err)
		assert.True(t, bytes.Equal(content, committed), "%s: run make lessons", name)
		return nil
	}))
	for i, l := range lessons {
		name := EditionName(l.ID)
		assert.False(t, want[name], "%s is another page", name)
		want[name] = true
		t.Run(l.ID, func(t *testing.T) {
			committed, err := os.ReadFile(filepath.Join(committedEdition, name))
			require.NoError(t, err, "run make lessons")
			var p editionPage
			content := clitest.Unpacked(t, committed)
			require.NoError(t, json.Unmarshal(content, &p))
			require.Equal(t, madeFrom(l.ID), p.Made, "the lesson has changed: run make lessons")

			recorded := &RecordedLesson{
				id: l.ID, hello: p.Hello, starts: p.Starts, frames: p.Frames,
			}
			var again bytes.Buffer
			require.NoError(t, recorded.WriteHTML(&again, e))
			shell := func(page []byte) string {
				return string(embeddedRecording.ReplaceAll(page, nil))
			}
			assert.Equal(t, shell(again.Bytes()), shell(committed), "run make lessons")
			assert.True(t, bytes.Equal(clitest.Unpacked(t, again.Bytes()), content),
				"the texts or the hello have changed: run make lessons")

			frames := p.complete(t)
			encoded, err := json.Marshal(frames[len(frames)-1])
			require.NoError(t, err)
			last := map[string]json.RawMessage{}
			for _, frame := range p.Frames {
				maps.Copy(last, frame)
			}
			complete, err := json.Marshal(last)
			require.NoError(t, err)
			assert.JSONEq(t, string(complete), string(encoded),
				"the fields of a frame have changed: run make lessons")
			assert.Len(t, p.Starts, len(l.Steps))
			for _, link := range p.Lessons[i].Links {
				file, _, _ := strings.Cut(link["path"].(string), "#")
				assert.FileExists(t, filepath.Join(committedEdition, p.Files, file))
			}
		})
	}
	size := int64(0)
	entries, err := os.ReadDir(committedEdition)
	require.NoError(t, err)
	for _, entry := range entries {
		assert.True(t, want[entry.Name()], "%s: of no lesson: run make lessons", entry.Name())
		info, err := entry.Info()
		require.NoError(t, err)
		size += info.Size()
	}
	assert.Less(t, size, int64(2<<20))
}
