// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"io"
	"os"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/cmd/informerstack/replay"
)

// checkWritable opens a file that is written at the end of a run, so that a wrong path is reported
// at its start.
func checkWritable(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return file.Close()
}

// startRecording records the run as --record and --html ask for, until stop is called.
func (o *options) startRecording(
	shown *lab.Lab, stderr io.Writer,
) (stop func() error, err error) {
	if o.record == "" && o.html == "" {
		return func() error { return nil }, nil
	}
	var clip lab.Clip
	file := io.Discard
	closeFile := func() error { return nil }
	if o.record != "" {
		created, err := os.Create(o.record)
		if err != nil {
			return nil, cli.Fail(cli.Usage, "--record: %w", err)
		}
		file, closeFile = created, created.Close
	}
	to := file
	if o.html != "" {
		if err := checkWritable(o.html); err != nil {
			return nil, cli.Fail(cli.Usage, "--html: %w", err)
		}
		to = io.MultiWriter(file, &clip)
	}
	stopRecording := shown.Record(to)
	return func() error {
		if err := errors.Join(stopRecording(), closeFile()); err != nil {
			return cli.Fail(cli.Failed, "--record: %w", err)
		}
		if o.html != "" {
			return replay.WriteHTML(&clip, o.html, stderr)
		}
		return nil
	}, nil
}
