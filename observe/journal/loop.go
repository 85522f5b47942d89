// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
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
		w.journal.wrote(key, write{sent, managerOf(request)})
	}
	return response, err
}

// write is the last write of an object with a key. manager is that of its fields, as the server
// derives it from the request; "" if it is not known.
type write struct {
	sent    time.Time
	manager string
}

func managerOf(request *http.Request) string {
	name, _, _ := strings.Cut(request.UserAgent(), "/")
	return strings.Clone(shortText(
		cmp.Or(request.URL.Query().Get("fieldManager"), name), maxPathRunes))
}

func (j *Journal) wrote(key string, w write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.writes != nil {
		j.writes.put(strings.Clone(key), w, writeBytes+len(key)+len(w.manager))
	}
}

// noteEchoLocked notes whether the reconcile before has caused the current one: all causes are
// updates of its object by this program, during that or soon after. A chain of such reconciles that
// nothing has followed soon has ended by itself, and is no loop: it is not counted.
func (j *Journal) noteEchoLocked(h *history) {
	own, soon, late := false, false, false
	if len(h.last) > 0 {
		own, soon, late = j.followsLocked(h.last[len(h.last)-1], h.current)
	}
	if late && !own {
		h.echoes, h.chain = 0, 0
	}
	h.echoes <<= 1
	if own && soon {
		h.echoes |= 1
	}
	h.chain++
}

// followsLocked reports whether all causes of a reconcile are updates of its object by this
// program, whether all came during the reconcile before or soon after, and whether all came later
// and that needed no retry.
func (j *Journal) followsLocked(before, r *Reconcile) (own, soon, late bool) {
	end := before.Start.Add(before.Duration)
	key := printable.Canonical(r.Key)
	own, soon, late = true, true, before.Result != Retried
	for i := range r.Causes {
		c := &r.Causes[i]
		at := c.Time
		if c.Kind == Delay {
			at = c.due()
		}
		isLate := at.After(end.Add(echo))
		soon = soon && !isLate && !c.Time.Before(before.Start)
		late = late && isLate && c.Kind != Retry && c.Kind != NotKnown
		own = own && c.Kind == Updated && c.call != nil && c.call.key == key &&
			j.isOwnLocked(c.call, before.Start, end)
	}
	return own, soon, late
}

// isOwnLocked reports whether this program has written an update: it has the manager of this
// program, or an object with the key was written between two times, by the manager of the update if
// that is known. That object may be another one, such as a child with the same name.
func (j *Journal) isOwnLocked(c *call, from, to time.Time) bool {
	var by []string
	if c.changed != nil {
		by = c.changed.managers
	}
	if slices.Contains(by, manager) {
		return true
	}
	wrote := j.writes.get(c.key)
	if wrote == nil || wrote.value.sent.Before(from) || wrote.value.sent.After(to) {
		return false
	}
	return by == nil || wrote.value.manager == "" || slices.Contains(by, wrote.value.manager)
}

// echoed returns how many of the last reconciles of a chain, of at most maxEchoes, were echoes.
func (h *history) echoed() (echoes, of int) {
	of = min(maxEchoes, h.chain)
	return bits.OnesCount64(h.echoes & (1<<of - 1)), of
}
