// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"math/bits"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/internal/helpers/printable"
)

const (
	// echo is how long after a reconcile an update may arrive that it wrote.
	echo = 250 * time.Millisecond
	// maxEchoes is the number of reconciles that echoes are counted of.
	maxEchoes = 40
	// writeBytes is the size of a write, without its key.
	writeBytes = 128
)

// manager is the name under which client-go writes for this program, unless a user agent or a field
// manager is set.
var manager = filepath.Base(os.Args[0])

// Writes notes the writes of this program, so that an update of an object that it wrote is known as
// its own, and the requests of the goroutines that have keys. It is for rest.Config.Wrap. Without
// it, an update is known as its own by its manager, if that is the name of the program's file.
func (j *Journal) Writes(next http.RoundTripper) http.RoundTripper { return writes{next, j} }

type writes struct {
	next    http.RoundTripper
	journal *Journal
}

// WrappedRoundTripper lets client-go find the transport inside.
func (w writes) WrappedRoundTripper() http.RoundTripper { return w.next }

// RoundTrip implements http.RoundTripper. It notes a write that was accepted.
func (w writes) RoundTrip(request *http.Request) (response *http.Response, err error) {
	sent := time.Now()
	answered := w.journal.sent(request, sent)
	defer func() { answered(response, err) }()
	response, err = w.next.RoundTrip(request)
	isRead := request.Method == http.MethodGet || request.Method == http.MethodHead
	if isRead || err != nil || response == nil || request.URL == nil || !w.journal.recording() ||
		response.StatusCode >= http.StatusMultipleChoices || request.URL.Query().Has("dryRun") {
		return response, err
	}
	if key, _ := objects.OfPath(request.URL.Path); key != "" {
		w.journal.wrote(key, sent)
	}
	return response, err
}

func (j *Journal) wrote(key string, sent time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.writes != nil {
		j.writes.put(strings.Clone(key), sent, writeBytes+len(key))
	}
}

// echoBitLocked is 1 if the reconcile before has caused the current one: all causes are updates of
// its object during that, or soon after. They have the manager of this program, or it wrote an
// object with that key meanwhile.
func (j *Journal) echoBitLocked(h *history) uint64 {
	if len(h.last) == 0 {
		return 0
	}
	before := h.last[len(h.last)-1]
	end := before.Start.Add(before.Duration)
	key := printable.Canonical(h.current.Key)
	isOwn := true
	for i := range h.current.Causes {
		c := &h.current.Causes[i]
		if c.Kind != Updated || c.call == nil || c.call.key != key || c.Time.Before(before.Start) ||
			c.Time.After(end.Add(echo)) {
			return 0
		}
		isOwn = isOwn && c.call.changed != nil && slices.Contains(c.call.changed.managers, manager)
	}
	if !isOwn {
		wrote := j.writes.get(key)
		isOwn = wrote != nil && !wrote.value.Before(before.Start) && !wrote.value.After(end)
	}
	if isOwn {
		return 1
	}
	return 0
}

// echoed returns how many of the last reconciles, of at most maxEchoes, were echoes.
func (h *history) echoed() (echoes, of int) {
	of = min(maxEchoes, h.count)
	return bits.OnesCount64(h.echoes & (1<<of - 1)), of
}
