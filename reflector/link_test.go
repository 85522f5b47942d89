// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector/wire"
)

var linkCount = flag.Int("links", 12, "how many slow links TestCurrentAsOf_SlowLink plays")

// slowLink is a server behind a slow link, and knows when each version came into being. The bytes
// of a watch arrive in order, in records of 16 KiB at most, each as a whole.
type slowLink struct {
	r         *Reflector
	bandwidth int           // bytes per second
	latency   time.Duration // of everything
	foreign   bool          // watches are not those of package wire
	decode    time.Duration // of a foreign watch, for an event
	largest   int           // object, in bytes

	history
	sizes []int
	body  *linkBody // of the open watch
	dead  bool      // what is sent from now on is lost, without an error
}

// linkBody is the body of one watch.
type linkBody struct {
	link    *slowLink
	next    int         // the version that is sent next
	free    time.Time   // when the link has transmitted all that was sent
	records []linkEntry // that have not been read
	changed chan struct{}
	closed  bool
}

type linkEntry struct {
	bytes   []byte
	arrives time.Time
}

// send sends the versions that the body lacks, and then a bookmark, if it is asked for.
func (b *linkBody) sendLocked(bookmark bool) {
	l := b.link
	for ; b.next < len(l.times); b.next++ {
		b.transmitLocked("MODIFIED", b.next+1, l.sizes[b.next])
	}
	if bookmark {
		b.transmitLocked("BOOKMARK", len(l.times), 0)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *linkBody) transmitLocked(event string, version, size int) {
	frame := []byte(fmt.Sprintf(`{"type":"%s","object":{"kind":"Pod","apiVersion":"v1",`+
		`"metadata":{"name":"a","resourceVersion":"%d","labels":{"a":"%s"}}}}`+"\n",
		event, version, strings.Repeat("a", size)))
	for len(frame) > 0 {
		n := min(len(frame), 16<<10)
		if now := time.Now(); b.free.Before(now) {
			b.free = now
		}
		b.free = b.free.Add(time.Duration(n) * time.Second / time.Duration(b.link.bandwidth))
		if !b.link.dead {
			b.records = append(b.records, linkEntry{frame[:n], b.free.Add(b.link.latency)})
		}
		frame = frame[n:]
	}
}

func (b *linkBody) Read(p []byte) (int, error) {
	b.link.mu.Lock()
	defer b.link.mu.Unlock()
	for {
		wait := forever
		switch {
		case b.closed:
			return 0, io.EOF
		case len(b.records) > 0 && !time.Now().Before(b.records[0].arrives):
			n := copy(p, b.records[0].bytes)
			if b.records[0].bytes = b.records[0].bytes[n:]; len(b.records[0].bytes) == 0 {
				b.records = b.records[1:]
			}
			return n, nil
		case len(b.records) > 0:
			wait = time.Until(b.records[0].arrives)
		}
		changed := b.changed
		b.link.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-changed:
		}
		b.link.mu.Lock()
	}
}

func (b *linkBody) Close() error {
	b.link.mu.Lock()
	defer b.link.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.changed)
		b.changed = make(chan struct{})
	}
	return nil
}

func (l *slowLink) change(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times, l.sizes = append(l.times, time.Now()), append(l.sizes, size)
	if l.body != nil {
		l.body.sendLocked(false)
	}
}

func (l *slowLink) bookmark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.body != nil {
		l.body.sendLocked(true)
	}
}

// cut ends the open watch. The client loses everything that is on its way.
func (l *slowLink) cut() {
	var body *linkBody
	l.set(func() { body, l.body, l.dead = l.body, nil, false })
	if body != nil {
		_ = body.Close()
	}
}

func (l *slowLink) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	time.Sleep(l.latency)
	l.mu.Lock()
	version := strconv.Itoa(len(l.times))
	list := podList(version, "", "a@"+version)
	l.mu.Unlock()
	time.Sleep(l.latency)
	return list, nil
}

func (l *slowLink) watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	time.Sleep(l.latency)
	l.mu.Lock()
	next, _ := strconv.Atoi(o.ResourceVersion)
	body := &linkBody{link: l, next: next, changed: make(chan struct{})}
	l.body = body
	body.sendLocked(false)
	l.mu.Unlock()
	time.Sleep(l.latency)
	inner := wire.ReadWatch(body, newPod, wire.Options{})
	if !l.foreign {
		return inner, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.playLocked(func(w *playedWatch) {
		defer inner.Stop()
		for {
			select {
			case e, open := <-inner.ResultChan():
				if !open {
					return
				}
				time.Sleep(l.decode)
				if !w.send(e) {
					return
				}
			case <-w.stopped:
				return
			}
		}
	}), nil
}

// load changes the collection for d, at most rate times a second, and checks all the time.
func (l *slowLink) load(t *testing.T, random *rand.Rand, d time.Duration) {
	rate := []int{1, 5, 20, 100}[random.IntN(4)]
	for end := time.Now().Add(d); time.Now().Before(end); {
		l.change(random.IntN(l.largest))
		time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second) / float64(rate)))
		l.check(t, l.r)
	}
}

// A store behind a slow link, a slow decoder and a slow transform is never said to be more current
// than it is; and when the changes have ended and arrived, it is known to be current after the next
// bookmark and a pause. The same holds if the connection is lost, with or without a notice.
func TestCurrentAsOf_SlowLink(t *testing.T) {
	for seed := range uint64(*linkCount) {
		for _, foreign := range []bool{false, true} {
			name := fmt.Sprintf("seed %d, foreign %v", seed, foreign)
			synctest.Test(t, func(t *testing.T) { playLink(t, seed, foreign, name) })
			require.False(t, t.Failed(), name)
		}
	}
}

func playLink(t *testing.T, seed uint64, foreign bool, name string) {
	random := rand.New(rand.NewPCG(seed, 3))
	l := &slowLink{
		bandwidth: slowestLink << random.IntN(6),
		latency:   time.Duration(random.IntN(100)) * time.Millisecond,
		foreign:   foreign,
		history:   history{server: server{open: map[*playedWatch]bool{}}},
		decode:    time.Duration(random.IntN(500)) * time.Millisecond,
	}
	l.largest = []int{10, 1000, 5000, 40_000}[random.IntN(4)]
	if l.foreign {
		l.largest = min(l.largest, l.bandwidth) // one event takes a second at most
	}
	options := Options{UseWatchList: new(bool)}
	if random.IntN(2) == 0 {
		options = slowly(time.Duration(random.IntN(100)) * time.Millisecond)
		options.UseWatchList = new(bool)
	}
	l.change(1)
	l.r = New(&ListWatch{l.list, l.watch}, &v1.Pod{}, &mapStore{}, options)
	stop := background(l.r.Run)
	defer func() {
		if t.Failed() {
			t.Log(name)
		}
		stop()
		l.cut()
		time.Sleep(time.Minute)
	}()
	time.Sleep(time.Second)
	l.change(l.largest) // the reflector knows how large an event may be
	time.Sleep(5 * time.Second)
	for range 3 {
		l.load(t, random, time.Duration(random.IntN(30))*time.Second)
		switch random.IntN(3) {
		case 0:
			l.cut()
		case 1:
			l.set(func() { l.dead = true })
			l.load(t, random, time.Duration(random.IntN(30))*time.Second)
			l.cut()
		}
		l.load(t, random, time.Duration(random.IntN(30))*time.Second)
		l.settle(t, random, name)
	}
}

// settle waits until everything has arrived, and then until the store is known to be current.
func (l *slowLink) settle(t *testing.T, random *rand.Rand, name string) {
	began := time.Now()
	newest := strconv.Itoa(len(l.times))
	for l.r.LastSyncResourceVersion() != newest {
		time.Sleep(200 * time.Millisecond)
		l.check(t, l.r)
		require.Less(t, time.Since(began), 12*time.Hour, name)
	}
	time.Sleep(foreignPause + longestLook)
	sent := time.Now()
	l.bookmark()
	time.Sleep(l.latency + l.decode + foreignPause + longestLook)
	require.LessOrEqual(t, l.check(t, l.r), time.Since(sent), name)
	time.Sleep(time.Duration(random.IntN(20)) * time.Second)
}
