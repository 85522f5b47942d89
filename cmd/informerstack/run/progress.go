// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/store"
)

// progressPeriod is the time between two lines while the first list loads.
const progressPeriod = time.Second

// progress reports how many objects of the first list have arrived.
type progress struct {
	out     io.Writer
	hint    func(context.Context, store.Store) string // what to print below the result, or ""
	arrived atomic.Int64
}

func newProgress(
	out io.Writer, hint func(context.Context, store.Store) string,
) *progress {
	return &progress{out: out, hint: hint}
}

// transform counts each object as it arrives, and drops its managed fields, which are not used
// here.
func (p *progress) transform(obj any) (any, error) {
	p.arrived.Add(1)
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetManagedFields(nil)
	return obj, nil
}

// run reports what has changed until loaded is closed: the store has all that it is to hold.
func (p *progress) run(
	ctx context.Context, loading informer.SharedInformer, loaded <-chan struct{},
) {
	start := time.Now()
	ticker := time.NewTicker(progressPeriod)
	defer ticker.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-loaded:
			objects := cli.Count(len(loading.GetStore().ListKeys()), "object")
			took := time.Since(start).Round(time.Millisecond)
			fmt.Fprintf(p.out, "Loaded %s in %v.\n", objects, took)
			if hint := p.hint(ctx, loading.GetStore()); hint != "" {
				fmt.Fprintln(p.out, printable.Text(hint))
			}
			return
		case <-ticker.C:
			line := fmt.Sprintf("Loading: %s so far.", cli.Count(int(p.arrived.Load()), "object"))
			if err := loading.Err(); err != nil {
				line += " The last attempt failed: " + printable.Text(err.Error())
			}
			if line != last {
				fmt.Fprintln(p.out, line)
			}
			last = line
		}
	}
}
