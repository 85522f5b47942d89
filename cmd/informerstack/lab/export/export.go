// SPDX-License-Identifier: Apache-2.0

// Package export writes the lessons of the laboratory as HTML pages that need no program.
//
//	lessons -> run.RecordLesson -> [export] -> a folder
//
// Read folder.go (a folder is written whole or not at all) and export.go; then go test -v
// ./cmd/informerstack/lab/export. Goroutines: one for each lesson, until all are played. Locking:
// none.
package export

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/cmd/informerstack/run"
	"example.com/informerstack/internal/helpers/printable"
)

const exportHelp = `
export plays every lesson of the laboratory on a pipeline of its own, in slow motion, and writes
each as an HTML page: DIR/ID.html has the texts, the questions with their answers, and the recorded
scenes, in English and Chinese. DIR/index.html lists the lessons, DIR/lab.js and DIR/lab.css are
shared. The pages need no server, no network and no program. They can be opened as files, and be
shown in an iframe.

With --files URL the pages link to the code, chapters and posts of this repository. URL is where
the repository's files are, and may be relative to DIR.

With --live it also writes DIR/live.html, a page that runs the laboratory itself in the browser, as
WebAssembly. Any static web server can serve it; a page that is opened as a file plays a recording.
To build the program, it needs Go, and the repository as the working directory.

A DIR that an earlier export has written is replaced. Any other folder must be empty. If a lesson
fails, nothing is written.

The lessons: `

const exportExamples = `
  informerstack lab export site/lessons
  informerstack lab export one --lesson resume --lesson tombstones
  informerstack lab export docs/lessons --files ../..
  informerstack lab export site/lessons --live
  <iframe src="lessons/resume.html#lang=zh" title="Lesson" width="100%" height="800"></iframe>`

// NewCommand returns the command informerstack lab, which has the command export.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Write the lessons of the laboratory as pages",
		Long:  "lab has the command that writes the lessons of the laboratory as pages.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExportCommand())
	return cmd
}

func newExportCommand() *cobra.Command {
	var ids []string
	var files string
	var live bool
	cmd := &cobra.Command{
		Use:     "export DIR",
		Short:   "Write every lesson as an HTML page that needs no program and no network",
		Long:    strings.TrimSpace(exportHelp) + " " + strings.Join(lab.LessonIDs(), ", ") + ".",
		Example: strings.Trim(exportExamples, "\n"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return cli.Fail(cli.Usage,
					"lab export: want one folder (see informerstack lab export --help)")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := selectLessons(ids)
			if err != nil {
				return err
			}
			if files != "" && !strings.HasSuffix(files, "/") {
				files += "/"
			}
			edition := lab.Edition{Lessons: chosen, Files: files}
			return export(cmd.Context(), args[0], edition, live, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringArrayVar(&ids, "lesson", nil,
		"write the lesson with this `ID` only; can be repeated (default: all lessons)")
	cmd.Flags().StringVar(&files, "files", "", "link to the repository's files at this `URL`")
	cmd.Flags().BoolVar(&live, "live", false,
		"also write a page that runs the laboratory in the browser")
	return cmd
}

// selectLessons returns the chosen lessons in the order of the laboratory, or all of them.
func selectLessons(chosen []string) ([]string, error) {
	all := lab.LessonIDs()
	if len(chosen) == 0 {
		return all, nil
	}
	for _, id := range chosen {
		if !slices.Contains(all, id) {
			return nil, cli.Fail(cli.Usage, "--lesson %q: want one of %s", id,
				strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(id string) bool { return !slices.Contains(chosen, id) }), nil
}

// export plays the lessons side by side, and writes their pages to a folder.
func export(
	ctx context.Context, path string, edition lab.Edition, live bool, stderr io.Writer,
) error {
	folder, err := newFolder(path)
	if err != nil {
		return err
	}
	defer folder.remove()
	if live {
		fmt.Fprintln(stderr, "Building the laboratory for the browser. This can take minutes.")
		if err := folder.writeProgram(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(stderr, "Playing %d lessons in slow motion. Ctrl-C stops.\n", len(edition.Lessons))
	playCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var playing sync.WaitGroup
	for _, id := range edition.Lessons {
		playing.Go(func() {
			if err := exportLesson(playCtx, folder, id, edition, live); err != nil {
				cancel(err) // ends the others
			}
		})
	}
	playing.Wait()
	switch {
	case ctx.Err() != nil:
		return cli.Fail(cli.Failed, "lab export: stopped, nothing was written")
	case playCtx.Err() != nil:
		return cli.Fail(cli.Failed, "lab export: %w", context.Cause(playCtx))
	}
	err = edition.WriteShared(func(name string, content []byte) error {
		return folder.write(name, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
	})
	if err != nil {
		return err
	}
	if err := folder.publish(); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "Wrote %d lessons to %s: open index.html.\n", len(edition.Lessons),
		printable.Text(path))
	return nil
}

// exportLesson plays a lesson and writes its page. The live page plays the first lesson.
func exportLesson(
	ctx context.Context, folder *folder, id string, edition lab.Edition, live bool,
) error {
	recorded, err := run.RecordLesson(ctx, id)
	if err != nil {
		return err
	}
	if live && id == edition.Lessons[0] { // the scene that plays while the program loads
		err := folder.write(lab.LiveName, func(w io.Writer) error {
			return recorded.WriteLive(w, edition)
		})
		if err != nil {
			return err
		}
	}
	return folder.write(lab.EditionName(id), func(w io.Writer) error {
		return recorded.WriteHTML(w, edition)
	})
}
