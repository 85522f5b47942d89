// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"example.com/informerstack/controller"
	"example.com/informerstack/reflector"
)

// Page is what /debug/informers shows.
type Page struct {
	Time        time.Time    `json:"time"`
	Informers   []Informer   `json:"informers"`
	Controllers []Controller `json:"controllers"`
	Queues      []Queue      `json:"queues"`
}

// Informer is an informer on the page.
type Informer struct {
	Name            string          `json:"name"`
	Started         bool            `json:"started"`
	Synced          bool            `json:"synced"`
	Stopped         bool            `json:"stopped"`
	Objects         int             `json:"objects"`
	Phase           reflector.Phase `json:"phase,omitempty"`
	ResourceVersion string          `json:"resourceVersion,omitempty"`

	LastContact  *time.Time `json:"lastContact,omitempty"`
	LastEvent    *time.Time `json:"lastEvent,omitempty"`
	LastBookmark *time.Time `json:"lastBookmark,omitempty"`

	Failures            int        `json:"failures"`
	ConsecutiveFailures int        `json:"consecutiveFailures"`
	Fallbacks           int        `json:"watchListFallbacks"`
	LastError           string     `json:"lastError,omitempty"`
	LastErrorTime       *time.Time `json:"lastErrorTime,omitempty"`

	Handlers []HandlerInfo `json:"handlers"`
}

// HandlerInfo is a handler of an informer on the page.
type HandlerInfo struct {
	Name                 string  `json:"name"`
	Synced               bool    `json:"synced"`
	Pending              int     `json:"pending"`
	OldestPendingSeconds float64 `json:"oldestPendingSeconds"`
	Calls                int     `json:"calls"`
	Panics               int     `json:"panics"`
}

// Queue is a workqueue on the page. Keys are printed with %v.
type Queue struct {
	Name       string           `json:"name"`
	Ready      List[string]     `json:"ready"`
	Processing List[string]     `json:"processing"`
	Again      List[string]     `json:"again"` // those of Processing that were added since
	Waiting    List[WaitingKey] `json:"waiting"`
}

// WaitingKey is a key whose time has not come.
type WaitingKey struct {
	Key      string    `json:"key"`
	Due      time.Time `json:"due"`
	Attempts int       `json:"attempts"` // failures that the rate limiter remembers
}

// Controller is a controller on the page, with its queue.
type Controller struct {
	Name        string            `json:"name"`
	Phase       controller.Phase  `json:"phase"`
	Missing     []MissingCache    `json:"missingCaches,omitempty"`
	Ready       List[string]      `json:"ready"`
	Running     List[RunningKey]  `json:"running"`
	Waiting     List[WaitingKey]  `json:"waiting"`
	Failing     List[FailingKey]  `json:"failing"`
	DeadLetters List[DeadLetter]  `json:"deadLetters"`
	Evicted     uint64            `json:"evicted"`
	KeyErrors   uint64            `json:"keyErrors"`
	Outcomes    map[string]uint64 `json:"outcomes"`
}

// MissingCache is a cache that a controller waits for.
type MissingCache struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
}

// RunningKey is a key that is being reconciled.
type RunningKey struct {
	Key         string    `json:"key"`
	ReconcileID string    `json:"reconcileID"`
	Since       time.Time `json:"since"`
}

// FailingKey is a key that failed since it last changed, and will be tried again.
type FailingKey struct {
	Key       string    `json:"key"`
	Attempts  int       `json:"attempts"`
	Since     time.Time `json:"since"`
	Last      time.Time `json:"last"`
	LastError string    `json:"lastError"`
}

// DeadLetter is a key that was given up.
type DeadLetter struct {
	Key       string            `json:"key"`
	Reason    controller.Reason `json:"reason"`
	Attempts  int               `json:"attempts"`
	Since     time.Time         `json:"since"`
	Last      time.Time         `json:"last"`
	LastError string            `json:"lastError"`
}

// List is the first of Total items.
type List[T any] struct {
	Total int `json:"total"`
	Items []T `json:"items"`
}

// defaultLimit is how many items of each list are shown if the request does not say.
const defaultLimit = 100

// Page returns what there is to show at this moment, of each list all items.
func (h *Handler) Page() Page {
	h.mu.Lock()
	informers, queues, controllers := h.informers, h.queues, h.controllers
	h.mu.Unlock()
	return Page{
		Time:        time.Now(),
		Informers:   each(informers),
		Queues:      each(queues),
		Controllers: each(controllers),
	}
}

func each[T any](snapshots []func() T) []T {
	all := make([]T, 0, len(snapshots))
	for _, snapshot := range snapshots {
		all = append(all, snapshot())
	}
	return all
}

// servePage answers as text, or as JSON if ?format=json or the Accept header asks for it.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request) {
	limit := defaultLimit
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			answer(w, http.StatusBadRequest, fmt.Sprintf("limit=%q: want a number, 0 or more\n", text))
			return
		}
	}
	asJSON := accepts(r, "application/json")
	switch format := r.URL.Query().Get("format"); format {
	case "":
	case "text":
		asJSON = false
	case "json":
		asJSON = true
	default:
		answer(w, http.StatusBadRequest, fmt.Sprintf("format=%q: want text or json\n", format))
		return
	}
	page := h.Page()
	page.cut(limit)
	if !asJSON {
		answer(w, http.StatusOK, page.String())
		return
	}
	text, err := json.MarshalIndent(page, "", "  ")
	if err != nil {
		answer(w, http.StatusInternalServerError, fmt.Sprintf("encode page: %v\n", err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer(w, http.StatusOK, string(text)+"\n")
}

// accepts tells whether a request asks for a media type by name.
func accepts(r *http.Request, wanted string) bool {
	for _, accepted := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		if mediaType, _, err := mime.ParseMediaType(accepted); err == nil && mediaType == wanted {
			return true
		}
	}
	return false
}

func (p *Page) cut(limit int) {
	for i := range p.Queues {
		q := &p.Queues[i]
		q.Ready.cut(limit)
		q.Processing.cut(limit)
		q.Again.cut(limit)
		q.Waiting.cut(limit)
	}
	for i := range p.Controllers {
		c := &p.Controllers[i]
		c.Ready.cut(limit)
		c.Running.cut(limit)
		c.Waiting.cut(limit)
		c.Failing.cut(limit)
		c.DeadLetters.cut(limit)
	}
}

func (l *List[T]) cut(limit int) { l.Items = l.Items[:min(limit, len(l.Items))] }
