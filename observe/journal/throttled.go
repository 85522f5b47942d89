// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/informerstack/internal/helpers/printable"
)

const (
	// lookPeriod is the least time between two looks at all goroutines. Looks may also take at
	// most one part in lookPart of the time, and those for stacks as much.
	lookPeriod = time.Second
	lookPart   = 100
	// maxProfiled is the number of goroutines above which no look is taken: it takes 2 to 5 µs of
	// processor time for each, while the program runs on.
	maxProfiled = 10_000
	// Looks are remembered for lookTime, and at most maxLooks of them.
	lookTime = time.Minute
	maxLooks = 60
)

// Throttled is about requests that wait for the limiter of their own client, which has the QPS and
// Burst of a rest.Config. The goroutines show it: one look is taken each time that Facts are asked
// for, at most once a second.
type Throttled struct {
	// Looks is the number of looks since Since, in the last minute, and Seen the number of those
	// that saw a request wait.
	Since time.Time `json:"since"`
	Looks int       `json:"looks"`
	Seen  int       `json:"seen"`
	// Waiting is the number of requests that waited in the last look that saw any. Most of them
	// were sent by Function, the first one outside of client-go and controller-runtime.
	Waiting  int    `json:"waiting"`
	Function string `json:"function"`
}

// looks are what the last looks at all goroutines have seen.
type looks struct {
	mu   sync.Mutex // held while a look is taken
	next time.Time
	last []look
}

type look struct {
	at       time.Time
	waiting  int
	function string
}

// nextLook returns when a look may follow one that began at a time and has just ended.
func nextLook(began time.Time) time.Time {
	return began.Add(max(lookPeriod, lookPart*time.Since(began)))
}

// tooMany returns the number of goroutines if they are too many for a look, or 0.
func tooMany() int {
	if n := runtime.NumGoroutine(); n > maxProfiled {
		return n
	}
	return 0
}

// take takes a look if it is time for one, and forgets old ones. It returns nil if no request has
// waited.
func (l *looks) take() *Throttled {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !now.Before(l.next) && tooMany() == 0 {
		waiting, function := throttled()
		l.last = append(l.last, look{now, waiting, function})
		l.next = nextLook(now)
	}
	l.last = slices.DeleteFunc(l.last, func(old look) bool { return now.Sub(old.at) > lookTime })
	l.last = l.last[max(0, len(l.last)-maxLooks):]
	t := Throttled{Looks: len(l.last)}
	for _, look := range l.last {
		if look.waiting > 0 {
			t.Seen++
			t.Waiting, t.Function = look.waiting, look.function
		}
	}
	if t.Seen == 0 {
		return nil
	}
	t.Since = l.last[0].at
	return &t
}

// limiterFrame is the function in which each request waits for its client's limiter.
const limiterFrame = "k8s.io/client-go/rest.(*Request).tryThrottle"

// libraries are parts of the names of functions that send requests for others.
var libraries = []string{"k8s.io/client-go/", "sigs.k8s.io/controller-runtime/", "/clientset/",
	"example.com/informerstack/reflector", "example.com/informerstack/informer.",
	"example.com/informerstack/leaderelection", "example.com/informerstack/compat/", "runtime."}

// throttled returns the number of goroutines that wait for the limiter of a REST client, and the
// function that most of them come from. The program runs on meanwhile, but for a moment.
func throttled() (waiting int, function string) {
	var profile bytes.Buffer
	if pprof.Lookup("goroutine").WriteTo(&profile, 1) != nil {
		return 0, ""
	}
	counts := map[string]int{}
	for stack := range bytes.SplitSeq(profile.Bytes(), []byte("\n\n")) {
		if bytes.Contains(stack, []byte(limiterFrame)) {
			n, sender := throttledBy(string(stack))
			waiting += n
			counts[sender] += n
		}
	}
	for sender, n := range counts {
		if n > counts[function] || n == counts[function] && sender < function {
			function = sender
		}
	}
	return waiting, function
}

// throttledBy reads a stack of a profile: the number of goroutines that have it, and a function in
// each line, the innermost first. sender is the first one that is not in a library, or the last.
//
//	2 @ 0x47e0ce 0x45d3a5
//	#	0x7a2a32	main.reconcile+0x32	/src/main.go:48
func throttledBy(stack string) (n int, sender string) {
	sending := false
	for line := range strings.Lines(stack) {
		if count, _, ok := strings.Cut(line, " @ "); ok {
			n, _ = strconv.Atoi(count)
		}
		parts := strings.Split(line, "\t")
		if len(parts) < 3 || parts[0] != "#" {
			continue
		}
		function := parts[2][:max(0, strings.LastIndex(parts[2], "+"))]
		sending = sending || strings.Contains(function, limiterFrame)
		if !sending {
			continue // it is in the limiter
		}
		library := slices.ContainsFunc(libraries, func(part string) bool {
			return strings.Contains(function, part)
		})
		if sender = shortFunction(function); !library {
			return n, sender
		}
	}
	return n, sender
}

// shortFunction returns the name of a function without the path of its package.
func shortFunction(name string) string {
	return printable.Short(name[strings.LastIndex(name, "/")+1:])
}
