// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/store"
)

// streams are the standard streams.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run connects to the server, builds the stack, and runs it until ctx is done.
func (o *options) run(ctx context.Context, std streams) error {
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	ctx = klog.NewContext(ctx, o.logger(std.err))
	listener, err := o.listener(ctx)
	if err != nil {
		return err
	}
	if listener != nil {
		defer listener.Close()
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	defer cluster.close()
	target, err := o.find(ctx, cluster.config)
	if err != nil {
		return err
	}
	var work *workload
	if cluster.server != nil {
		work = newWorkload(cluster.server, o)
	}
	shown, err := o.newPage(cluster, target, work)
	if err != nil {
		return err
	}
	watched := printable.Text(target.describe(cluster.config.Host))
	fmt.Fprintf(std.err, "Watching %s. Ctrl-C stops.\n", watched)
	if err := o.offerKubectl(cluster.config.Host, std.err); err != nil {
		return err
	}
	if work != nil {
		stopWorkload := work.start(o)
		defer stopWorkload()
	}
	stopServing := o.serveHTTP(shown, listener, std.err)
	defer stopServing()
	stopRecording, err := shown.record(o, std.err)
	if err != nil {
		return err
	}
	return cmp.Or(o.trace(ctx, std, cluster, target, shown), stopRecording())
}

// trace runs the stack until ctx is done, and prints its hops and the summary.
func (o *options) trace(
	ctx context.Context, std streams, cluster *cluster, target target, shown *page,
) error {
	o.key = target.key(o.key)
	out := o.newOutput(std.out)
	shown.pace(o, std, out.shows)
	var last *stack
	err := shown.run(ctx, o, func(ctx context.Context, o *options) error {
		sink, end := out.pipeline(ctx, o)
		defer end()
		if cluster.server != nil {
			traceFaults(cluster.server, target, sink)
		}
		progress := newProgress(std.err, func(ctx context.Context, objects store.Store) string {
			return o.hint(ctx, cluster.config, target, objects)
		})
		stack, err := o.build(cluster.config, target, sink, progress, shown)
		if err != nil {
			return err
		}
		last = stack
		return stack.run(ctx)
	})
	if last != nil {
		out.totals.print(std.out, o.output, last)
	}
	return err
}

// logger returns the logger of the pieces. Without --verbose it is silent: the hops have the
// errors, too.
func (o *options) logger(stderr io.Writer) klog.Logger {
	if !o.verbose {
		return logr.Discard()
	}
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(printableLog{stderr})))
}

// printableLog writes log entries. klog quotes values, except for those of several lines.
type printableLog struct{ io.Writer }

func (l printableLog) Write(entry []byte) (int, error) {
	text := printable.Lines(strings.TrimSuffix(string(entry), "\n"))
	_, err := io.WriteString(l.Writer, text+"\n")
	return len(entry), err
}
