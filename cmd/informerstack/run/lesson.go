// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
)

// lessonObjects is the number of objects at the beginning of a recorded lesson. They fit on a
// phone.
const lessonObjects = 4

// RecordLesson plays a lesson on an embedded server and a pipeline of its own, without load.
func RecordLesson(ctx context.Context, id string) (*lab.RecordedLesson, error) {
	var o options
	o.addFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // sets the defaults
	o.objects, o.rate = lessonObjects, 0
	server, err := o.cluster.Connect()
	if err != nil {
		return nil, err
	}
	defer server.Close()
	target, err := o.find(ctx, server.Config)
	if err != nil {
		return nil, err
	}
	work := configmaps.NewWorkload(server.Server, o.seed, o.rate, o.objects)
	shown, err := o.newPage(server, target, work)
	if err != nil {
		return nil, err
	}
	defer work.Start(false)()
	var running sync.WaitGroup
	defer running.Wait()
	defer shown.close()
	ctx, cancel := context.WithCancelCause(klog.NewContext(ctx, o.logger(io.Discard)))
	defer cancel(nil)
	running.Go(func() {
		silent := streams{strings.NewReader(""), io.Discard, io.Discard}
		cancel(o.trace(ctx, silent, server, target, shown))
	})
	return shown.lab.RecordLesson(ctx, id, lab.EditionDelay)
}
