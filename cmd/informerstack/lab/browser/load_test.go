// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

var soak = flag.Duration("soak", 10*time.Second,
	"how long 10,000 objects change 1,000 times per second while a page is open")

const (
	maxFrame = 0.08            // seconds of a processor per frame that is sent, of 10 per second
	maxHeap  = 24 << 20        // bytes after a garbage collection
	maxGrown = 8 << 20         // bytes more than at the start
	maxNodes = 6_000           // of the document
	slice    = 5 * time.Second // between two measurements
)

// drawn counts, in some milliseconds, the frames that the page has drawn, and its longest pause
// between two pictures.
const drawn = `new Promise((resolve) => {
	const start = performance.now();
	let [frames, last, before, pause] = [0, "", start, 0];
	const look = (now) => {
		const shown = document.querySelector(".state").textContent;
		if (shown !== last) frames++;
		last = shown;
		pause = Math.max(pause, now - before);
		before = now;
		if (now - start < %d) requestAnimationFrame(look);
		else resolve({ frames: frames / (now - start) * 1000, pause });
	};
	requestAnimationFrame(look);
})`

// pace is the result of drawn.
type pace struct{ Frames, Pause float64 }

// usage is what a tab needs after a garbage collection, and the time for which it has used a
// processor, on its main thread.
type usage struct{ heap, nodes, listeners, seconds float64 }

func (p *tab) usage() usage {
	p.t.Helper()
	call(p, heapprofiler.CollectGarbage, cdp.Empty{})
	var u usage
	for _, m := range call(p, performance.GetMetrics, cdp.Empty{}).Metrics {
		switch m.Name {
		case "JSHeapUsedSize":
			u.heap = m.Value
		case "Nodes":
			u.nodes = m.Value
		case "JSEventListeners":
			u.listeners = m.Value
		case "ThreadTime":
			u.seconds = m.Value
		}
	}
	return u
}

// With 10,000 objects and 1,000 changes per second, the page keeps up with ten frames per
// second, its memory does not grow, and it shows that it samples. The test runs alone, before the
// parallel ones. It judges the time of a processor per frame, because other programs may share the
// machine: a page that does not keep up uses all of a processor, which is 0.1 s per frame.
func TestLoad_IsDrawnSmoothly(t *testing.T) {
	p := start(t, "run", "--objects", "10000", "--rate", "1000")
	f := p.frames()
	s := open(t, p.url+"/", moving)
	call(s, performance.Enable, performance.EnableParams{})
	s.await("the page shows that it samples", element(".badge.warn"))
	evaluate[pace](s, fmt.Sprintf(drawn, slice.Milliseconds())) // the rings fill
	first, begin := s.usage(), f.now()
	last := first
	for before := begin; before.Time.Sub(begin.Time) < *soak; before = f.now() {
		d := evaluate[pace](s, fmt.Sprintf(drawn, slice.Milliseconds()))
		u, now := s.usage(), f.now()
		t.Logf("%.1f frames/s drawn, %.3f s of a processor, longest pause %.0f ms; %.1f frames/s "+
			"sent, %.0f writes/s, %.0f events/s; heap %.1f MB, %.0f nodes, %.0f listeners",
			d.Frames, u.seconds-last.seconds, d.Pause, sent(before, now), writes(before, now),
			now.Counters.PerSecond, u.heap/(1<<20), u.nodes, u.listeners)
		assert.Positive(t, d.Frames)
		assert.LessOrEqual(t, u.heap, float64(maxHeap), "bytes of heap")
		assert.LessOrEqual(t, u.heap-first.heap, float64(maxGrown), "the heap grows")
		assert.LessOrEqual(t, u.nodes, float64(maxNodes), "nodes of the document")
		last = u
	}
	frames := float64(f.now().Seq - begin.Seq)
	assert.LessOrEqual(t, (last.seconds-first.seconds)/frames, maxFrame, "seconds per frame")
	end := f.until("the counters are those of the program", func(f lab.Frame) bool {
		return f.Store.Objects > 9_000 && f.Counters.Events > f.Counters.Shown
	})
	s.await("the page shows the number of objects", fmt.Sprintf(`Math.abs(%d -
		Number.parseInt(document.querySelector(".card-store small").textContent.replace(",", "")))
		< 2000`, end.Store.Objects))
	s.click(button(" "))
	f.until("it can be paused", func(f lab.Frame) bool { return f.Mode == lab.Pause })
	s.await("the page shows that", element(".time.paused"))
}

// sent is the number of frames that the program has sent per second.
func sent(from, to lab.Frame) float64 {
	return float64(to.Seq-from.Seq) / to.Time.Sub(from.Time).Seconds()
}

// writes is the number of writes per second: changes of the workload and those of the workers.
func writes(from, to lab.Frame) float64 {
	return float64(version(to.Server.RV)-version(from.Server.RV)) /
		to.Time.Sub(from.Time).Seconds()
}
