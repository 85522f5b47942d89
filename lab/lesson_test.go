// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each step of each lesson does what its text says, on both queues, and twice in a row.
func TestLessons_DoWhatTheySay(t *testing.T) {
	for _, queue := range []string{"deltafifo", "realfifo"} {
		for _, l := range lessons {
			t.Run(queue+"/"+l.ID, func(t *testing.T) {
				story(t, func(w *world) {
					w.mustDo(`{"do":"settings","queue":%q}`, queue)
					w.after(time.Second)
					for range 2 {
						playAll(w, l)
					}
				})
			})
		}
	}
}

func playAll(w *world, l lesson) {
	for step := range l.Steps {
		w.mustDo(`{"do":"lesson","id":%q,"step":%d}`, l.ID, step)
		view := w.frame().Lesson
		for view.State == "running" {
			w.after(100 * time.Millisecond)
			view = w.frame().Lesson
		}
		assert.Equal(w.t, LessonView{
			ID: l.ID, Step: step, State: "done", Watch: l.Steps[step].Watch,
		}, *view)
		w.after(3 * time.Second) // as a reader does
	}
}

// Only one step plays at a time, and it must exist.
func TestLessons_RefuseWhatCannotPlay(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"lesson","id":"onadd","step":0}`)
		assert.Contains(t, w.do(`{"do":"lesson","id":"onadd","step":0}`), "is playing")
		assert.NotEmpty(t, w.do(`{"do":"lesson","id":"none","step":0}`))
		assert.NotEmpty(t, w.do(`{"do":"lesson","id":"onadd","step":9}`))
	})
}

// text is a text in both languages.
type text struct{ En, Zh string }

func TestLessons_AreComplete(t *testing.T) {
	var file struct {
		Lessons []struct {
			ID    string
			Title text
			Steps []struct {
				Text     text
				Question *struct {
					Ask, Answer text
					Options     []struct {
						Text  text
						Right bool
					}
				}
			}
			Links []struct{ Kind, Path string }
		}
	}
	require.NoError(t, json.Unmarshal(lessonsFile, &file))
	complete := func(texts ...text) {
		for _, text := range texts {
			assert.NotEmpty(t, text.En)
			assert.NotEmpty(t, text.Zh)
		}
	}
	for _, l := range file.Lessons {
		complete(l.Title)
		for _, step := range l.Steps {
			complete(step.Text)
			if step.Question == nil {
				continue
			}
			complete(step.Question.Ask, step.Question.Answer)
			right := 0
			for _, option := range step.Question.Options {
				complete(option.Text)
				if option.Right {
					right++
				}
			}
			assert.Equal(t, 1, right, "%s: %s", l.ID, step.Text.En)
		}
		for _, link := range l.Links {
			_, err := os.Stat(filepath.Join("..", link.Path))
			assert.NoError(t, err, l.ID)
		}
	}
}
