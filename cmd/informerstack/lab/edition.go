// SPDX-License-Identifier: Apache-2.0

//go:build !js

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"
)

// EditionDelay is the delay per hop of RecordLesson with which two frames show each state.
const EditionDelay = 2 * framePeriod

const (
	// editionCrowd is the number of objects from which on a lesson plays at full speed: its content
	// is the crowd, not the way of each object.
	editionCrowd = 20
	// editionPause is the time after each step, in which its last changes arrive.
	editionPause = time.Second
	// stepLimit bounds a recorded step. Time limits of its own do not count in slow motion.
	stepLimit = 2 * time.Minute
)

// EditionMark is in each file of the static edition, within its first kilobyte.
const EditionMark = `<meta name="generator" content="informerstack lab export">`

const (
	// editionIndex is the name of the page that lists the lessons. The pages of the lessons share
	// the script and the styles.
	editionIndex  = "index.html"
	editionScript = "lab.js"
	editionStyles = "lab.css"
	// editionPolicy allows the shared files, of a web server or from the disk.
	editionPolicy = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; " +
		"img-src data:; base-uri 'none'"
)

// EditionName is the file name of a lesson's page in the static edition.
func EditionName(id string) string { return id + ".html" }

// RecordedLesson is a lesson that was played, with the frames of each step.
type RecordedLesson struct {
	id     string
	hello  Hello
	starts []int // the first frame of each step; frames before are of the pipeline at rest
	frames []map[string]json.RawMessage

	last map[string]json.RawMessage // the newest frame, complete
}

// RecordLesson plays a lesson from its beginning to its end, with a delay per hop, and records it.
// It fails with the first step that fails. The pipeline need not be at rest yet. Nothing else may
// use the Lab meanwhile. A lesson with many objects plays at full speed.
func (l *Lab) RecordLesson(
	ctx context.Context, id string, delay time.Duration,
) (*RecordedLesson, error) {
	i := slices.IndexFunc(lessons, func(l lesson) bool { return l.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("no lesson %q", id)
	}
	frames, leave := l.stream.open()
	defer leave()
	r := &RecordedLesson{id: id, hello: l.recordedHello()}
	if err := r.begin(ctx, l, frames); err != nil {
		return nil, fmt.Errorf("lesson %s: prepare the pipeline: %w", id, err)
	}
	if delay > 0 && !lessons[i].isCrowded() {
		l.SetMode(Slow, delay, nil)
	}
	for step := range lessons[i].Steps {
		if err := r.play(ctx, l, step, frames); err != nil {
			return nil, fmt.Errorf("lesson %s, step %d: %w", id, step+1, err)
		}
	}
	return r, nil
}

// begin waits until the pipeline of the lesson is at rest, and adds the frame of that time.
func (r *RecordedLesson) begin(ctx context.Context, l *Lab, frames <-chan []byte) error {
	if err := l.lesson(r.id, -1, false); err != nil {
		return err
	}
	return follow(ctx, frames, func(f Frame, _ []byte) (bool, error) {
		switch {
		case f.Lesson == nil || f.Lesson.State != "done":
			return false, nil
		case f.Lesson.Error != "":
			return false, errors.New(f.Lesson.Error)
		}
		f.Lesson = nil
		encoded, err := json.Marshal(f)
		return true, errors.Join(err, r.add(encoded))
	})
}

// isCrowded reports whether a step of the lesson needs many objects.
func (l lesson) isCrowded() bool {
	return slices.ContainsFunc(l.Steps, func(step lessonStep) bool {
		return slices.ContainsFunc(step.Script, func(line scriptLine) bool {
			return line.Do == "workload" && line.Objects >= editionCrowd
		})
	})
}

// play plays a step and adds its frames. It asks for the solution of a task, and continues after
// each stop. A stop without a sentence is an error, because readers would find it in each page.
func (r *RecordedLesson) play(ctx context.Context, l *Lab, step int, frames <-chan []byte) error {
	r.starts = append(r.starts, len(r.frames))
	if err := l.lesson(r.id, step, false); err != nil {
		return err
	}
	solved, stops := false, 0
	err := follow(ctx, frames, func(f Frame, encoded []byte) (bool, error) {
		if err := r.add(encoded); err != nil {
			return false, err
		}
		if f.Lesson == nil || f.Lesson.Step != step {
			return false, nil
		}
		switch stop := f.Lesson.Stop; {
		case stop != nil && stop.N > stops:
			if stop.Says == nil {
				return false, fmt.Errorf("stop %d: its frame proves no sentence", stop.N)
			}
			stops = stop.N
			l.player.goOn()
		case f.Lesson.State == "yours" && !solved:
			solved = true
			return false, l.run(command{Do: "solve"})
		case f.Lesson.Error != "":
			return false, errors.New(f.Lesson.Error)
		}
		return f.Lesson.State == "done", nil
	})
	if err != nil {
		return err
	}
	after, stop := context.WithTimeout(ctx, editionPause)
	defer stop()
	err = follow(after, frames, func(_ Frame, encoded []byte) (bool, error) {
		return false, r.add(encoded)
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// follow gives each frame to look until look returns true or an error, or ctx or stepLimit ends.
func follow(
	ctx context.Context, frames <-chan []byte,
	look func(f Frame, encoded []byte) (done bool, err error),
) error {
	limit := time.NewTimer(stepLimit)
	defer limit.Stop()
	for {
		select {
		case encoded, open := <-frames:
			if !open {
				return errClosed
			}
			var f Frame
			if err := json.Unmarshal(encoded, &f); err != nil {
				return err
			}
			if done, err := look(f, encoded); done || err != nil {
				return err
			}
		case <-limit.C:
			return fmt.Errorf("no end within %v", stepLimit)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// add adds the fields of a frame that differ from those of the frame before.
func (r *RecordedLesson) add(encoded []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return err
	}
	if len(r.frames) == 0 {
		fields["hops"] = json.RawMessage("[]") // the start of the pipeline is not in the lesson
	}
	changed := map[string]json.RawMessage{}
	for name, value := range fields {
		if !bytes.Equal(value, r.last[name]) {
			changed[name] = value
		}
	}
	r.frames = append(r.frames, changed)
	r.last = fields
	return nil
}

// Edition is the static edition: its lessons, in the order of the laboratory, and the address of
// the repository's files, relative to the pages, which link to them. Without an address the pages
// name the files.
type Edition struct {
	Lessons []string
	Files   string
}

// WriteHTML writes the page of a lesson, which shows its recorded steps without a server. It needs
// the files of WriteShared beside it, and links to the pages of the other lessons.
func (r *RecordedLesson) WriteHTML(w io.Writer, e Edition) error {
	texts := make([]lessonText, 0, len(e.Lessons))
	for _, id := range e.Lessons {
		text := lessonTexts()[id]
		if id != r.id {
			text = lessonText{"id": text["id"], "title": text["title"]}
		}
		texts = append(texts, text)
	}
	recording, err := json.Marshal(map[string]any{
		"hello": r.hello, "lesson": r.id, "lessons": texts, "files": e.Files,
		"made": madeFrom(r.id), "starts": r.starts, "frames": r.frames,
	})
	if err != nil {
		return err
	}
	title := template.HTMLEscapeString(lessonTexts()[r.id].title()["en"])
	_, err = fmt.Fprintf(w, pageWithoutProgram, editionPolicy,
		EditionMark+"\n<title>"+title+"</title>",
		`<link rel="stylesheet" href="`+editionStyles+`">`, pack(recording),
		`<script src="`+editionScript+`"></script>`)
	return err
}

// WriteShared writes the files of the edition that all lessons share: it calls write with the name
// and the content of each.
func (e Edition) WriteShared(write func(name string, content []byte) error) error {
	code, err := script()
	if err != nil {
		return err
	}
	styles, err := styleSheet()
	if err != nil {
		return err
	}
	var index bytes.Buffer
	if err := e.writeIndex(&index); err != nil {
		return err
	}
	return errors.Join(
		write(editionScript, []byte("// "+EditionMark+"\n"+code)),
		write(editionStyles, []byte("/* "+EditionMark+" */\n"+styles)),
		write(editionIndex, index.Bytes()))
}

// madeFrom is the hash of a lesson as it is now, with its scripts.
func madeFrom(id string) string {
	i := slices.IndexFunc(lessons, func(l lesson) bool { return l.ID == id })
	encoded, _ := json.Marshal(lessons[i]) // it was JSON before
	return hash(string(encoded))
}

// lessonText has the fields of a lesson that the page shows.
type lessonText map[string]json.RawMessage

// title is the title by language.
func (t lessonText) title() (title map[string]string) {
	_ = json.Unmarshal(t["title"], &title)
	return title
}

// lessonTexts returns the texts of each lesson by its id. The scripts are for the program.
var lessonTexts = sync.OnceValue(func() map[string]lessonText {
	var file struct{ Lessons []lessonText }
	if err := json.Unmarshal(lessonsFile, &file); err != nil {
		panic(err) // the file is embedded
	}
	texts := map[string]lessonText{}
	for i, text := range file.Lessons {
		var steps []map[string]json.RawMessage
		if err := json.Unmarshal(text["steps"], &steps); err != nil {
			panic(err)
		}
		for _, step := range steps {
			delete(step, "script")
		}
		text["steps"], _ = json.Marshal(steps) // it was JSON before
		texts[lessons[i].ID] = text
	}
	return texts
})

// indexPage is the page that lists the lessons of an edition. It needs no script.
var indexPage = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{{.Mark}}
<title>informerstack: lessons</title>
<style>{{.Style}}</style>
</head>
<body>
<main><article>
<h1>Lessons of the informer stack</h1>
<p>Each lesson shows a real pipeline, recorded in slow motion: from the API server to the workers
of a controller. It asks a question before it shows the answer.</p>
<p lang="zh-Hans">每一课都是真实流水线的慢动作记录：从 API 服务器到控制器的 worker。先提问，再演示答案。</p>
<ol>
{{- range .Lessons}}
<li><a href="{{.Page}}#lang=en">{{.Title.en}}</a><br>
<a href="{{.Page}}#lang=zh" lang="zh-Hans">{{.Title.zh}}</a></li>
{{- end}}
</ol>
</article></main>
</body>
</html>
`))

// writeIndex writes the page that lists the lessons.
func (e Edition) writeIndex(w io.Writer) error {
	style, err := fs.ReadFile(assets, "read.css")
	if err != nil {
		return err
	}
	type entry struct {
		Page  string
		Title map[string]string
	}
	var entries []entry
	for _, id := range e.Lessons {
		entries = append(entries, entry{EditionName(id), lessonTexts()[id].title()})
	}
	return indexPage.Execute(w, map[string]any{
		"Policy":  "default-src 'none'; style-src " + hash(string(style)) + "; base-uri 'none'",
		"Mark":    template.HTML(EditionMark),
		"Style":   template.CSS(style),
		"Lessons": entries,
	})
}
