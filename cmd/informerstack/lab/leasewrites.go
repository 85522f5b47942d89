// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
)

// maxLeaseWrites is how many writes of the lease a frame has.
const maxLeaseWrites = 4

// leaseWrites are the writes of the lease, as the server has answered them.
type leaseWrites struct {
	mu       sync.Mutex
	holder   string       // that of the last write that was accepted
	writes   []LeaseWrite // those that changed the holder, or were refused; the newest first
	refusals int          // answers 409
	releases int          // accepted writes without a holder
}

// of returns a wrapper for the transport of a candidate's lock.
func (w *leaseWrites) of(candidate string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &leaseTransport{next, candidate, w}
	}
}

// note notes a write with its answer. If several candidates write to one version, the accepted
// write was the first, even if its answer arrives later.
func (w *leaseWrites) note(write LeaseWrite) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := 0
	switch {
	case write.Code == http.StatusConflict:
		w.refusals++
	case write.Code >= http.StatusMultipleChoices || write.Holder == w.holder:
		return
	default:
		w.holder = write.Holder
		if write.Holder == "" {
			w.releases++
		}
		for at < len(w.writes) && w.writes[at].RV == write.RV {
			at++
		}
	}
	w.writes = slices.Insert(w.writes, at, write)
	w.writes = w.writes[:min(len(w.writes), maxLeaseWrites)]
}

func (w *leaseWrites) describe(v *ElectionView) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v.Holder, v.Refusals, v.Releases = w.holder, w.refusals, w.releases
	v.Writes = append([]LeaseWrite{}, w.writes...)
}

// leaseTransport notes the writes of one candidate.
type leaseTransport struct {
	next      http.RoundTripper
	candidate string
	writes    *leaseWrites
}

// RoundTrip sends a request, and notes a write with its answer.
func (t *leaseTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	write, ok := t.read(request)
	answer, err := t.next.RoundTrip(request)
	if ok && err == nil {
		write.Code = answer.StatusCode
		t.writes.note(write)
	}
	return answer, err
}

// read reads a copy of the body of a write.
func (t *leaseTransport) read(request *http.Request) (write LeaseWrite, ok bool) {
	if request.Method == http.MethodGet || request.GetBody == nil {
		return LeaseWrite{}, false
	}
	body, err := request.GetBody()
	if err != nil {
		return LeaseWrite{}, false
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	var lease struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	if err != nil || json.Unmarshal(content, &lease) != nil {
		return LeaseWrite{}, false
	}
	return LeaseWrite{
		By: t.candidate, RV: lease.Metadata.ResourceVersion, Holder: lease.Spec.HolderIdentity,
	}, true
}
