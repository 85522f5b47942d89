// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// pageSize is the number of objects in a page.
const pageSize = 2

// pageFault is what is wrong with a page that is not the first one of its list.
type pageFault string

const (
	tokenExpired      pageFault = "expired"      // 410
	tokenInconsistent pageFault = "inconsistent" // 410, with a token for the newest state
	tokenRepeats      pageFault = "repeats"      // the token of the next page is that of this one
	pageShrinks       pageFault = "shrinks"      // it has one object
	pageIsNewer       pageFault = "newer"        // it claims to be of the newest version
	pageOverlaps      pageFault = "overlaps"     // it begins with the last object before it
)

var pageFaults = []pageFault{
	tokenExpired, tokenInconsistent, tokenRepeats, pageShrinks, pageIsNewer, pageOverlaps,
}

// pageServer is a server without a watch cache, which has every list in pages, also one of any
// state. It refuses the first request: at its error, client-go's reflector is given the page size.
type pageServer struct {
	next    http.RoundTripper
	w       *world
	mu      sync.Mutex
	asked   bool
	fault   pageFault
	matches int // how many pages have the fault; less than 0 for all
}

func (s *pageServer) set(fault pageFault, matches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.matches = fault, matches
}

// take returns the fault of the next page, and whether it is of the first request.
func (s *pageServer) take(isPage bool) (fault pageFault, isFirst bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isFirst, s.asked = !s.asked, true
	if !isPage || s.matches == 0 {
		return "", isFirst
	}
	s.matches--
	s.w.cover("met page " + string(s.fault))
	return s.fault, isFirst
}

func (s *pageServer) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if !isFetch(r) || query.Get("watch") != "" {
		return s.next.RoundTrip(r)
	}
	fault, isFirst := s.take(query.Has("continue"))
	if isFirst {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	if fault != "" {
		select { // users write meanwhile
		case <-time.After(time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if query.Has("limit") && query.Get("resourceVersion") == "0" {
		query.Del("resourceVersion")
	}
	switch fault {
	case tokenExpired:
		return expire(r, ""), nil
	case tokenInconsistent:
		return expire(r, changeToken(query, func(t *token) { t.Version = -1 })), nil
	case pageOverlaps:
		query.Set("continue", changeToken(query, func(t *token) {
			t.Start = strings.TrimSuffix(t.Start, "\x00")
		}))
	case pageShrinks:
		query.Set("limit", "1")
	}
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	answer, err := s.next.RoundTrip(r)
	if err != nil || fault != tokenRepeats && fault != pageIsNewer {
		return answer, err
	}
	return s.change(answer, fault, query)
}

// expire returns a 410 with a token.
func expire(r *http.Request, token string) *http.Response {
	status := apierrors.NewResourceExpired("the continue token is too old").ErrStatus
	status.Kind, status.APIVersion, status.Continue = "Status", "v1", token
	return statusAnswer(r, status)
}

// token is a continue token. Version -1 is the newest.
type token struct {
	Format  string `json:"v"`
	Version int64  `json:"rv"`
	Start   string `json:"start"`
}

// changeToken returns the token of a request with a change.
func changeToken(query url.Values, change func(*token)) string {
	text, _ := base64.RawURLEncoding.DecodeString(query.Get("continue"))
	var t token
	_ = json.Unmarshal(text, &t)
	change(&t)
	text, _ = json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(text)
}

// change returns a list with other metadata.
func (s *pageServer) change(
	answer *http.Response, fault pageFault, query url.Values,
) (*http.Response, error) {
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	list := map[string]any{}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	metadata, _ := list["metadata"].(map[string]any)
	if fault == pageIsNewer && metadata != nil {
		metadata["resourceVersion"] = s.w.server.ResourceVersion()
	}
	if fault == tokenRepeats && metadata != nil {
		metadata["continue"] = query.Get("continue")
	}
	text, err = json.Marshal(list)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, err
}

// breakPages makes pages of a process faulty, and makes it list.
func (w *world) breakPages(p *process, s step) {
	if p.pageServer == nil {
		return
	}
	p.pageServer.set(pageFaults[s.n%len(pageFaults)], 1+s.n/8)
	if s.n/8 == 7 {
		p.pageServer.set(pageFaults[s.n%len(pageFaults)], -1)
		w.during(s.d, func() { p.pageServer.set("", 0) })
	}
	serverKinds["expire"](w, p, s)
}

// generatePages makes a script of a seed. All its lists have pages.
func generatePages(seed uint64) script {
	s := generate(seed)
	r := rand.New(rand.NewPCG(seed, 4))
	for i := range s.setups {
		s.setups[i].fetch = []string{"list", "stream"}[r.IntN(2)]
		s.setups[i].pages = "uncached"
	}
	for range 8 {
		s.steps = slices.Insert(s.steps, r.IntN(len(s.steps)), step{
			wait: randomWait(r), kind: "badpage", p: r.IntN(3), n: r.IntN(64),
			d: time.Duration(1+r.IntN(40)) * time.Second,
		})
	}
	return s
}

// Lists in pages differ from those of client-go only as docs/differences.md describes.
func TestReferencePages(t *testing.T) {
	var covered []string
	for _, fault := range pageFaults {
		covered = append(covered, "met page "+string(fault))
	}
	comparePairs(t, generatePages, covered...).checkRecovery(t)
}
