// SPDX-License-Identifier: Apache-2.0

package lab

import "time"

// Limits of a frame. The totals beside the lists are exact.
const (
	maxRows = 50
	maxHops = 200
	maxHeld = 10

	maxGroups = 8
)

// Hello is the first message to a page.
type Hello struct {
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Resource string    `json:"resource"`
	Writable bool      `json:"writable"`
	Replay   bool      `json:"replay"`
	Lessons  []string  `json:"lessons"`
	Code     Code      `json:"code"`
	Token    string    `json:"token,omitempty"`
}

// Frame is the state of the pipeline at one time, with the hops since the last frame. Its fields
// are described in protocol.md.
type Frame struct {
	Seq       int           `json:"seq"`
	Time      time.Time     `json:"t"`
	Mode      Mode          `json:"mode"`
	DelayMs   float64       `json:"delayMs"`
	Held      []HeldHop     `json:"held"`
	Server    ServerView    `json:"server"`
	Reflector ReflectorView `json:"reflector"`
	Queue     QueueView     `json:"queue"`
	Store     StoreView     `json:"store"`
	Log       LogView       `json:"log"`
	Handlers  []HandlerView `json:"handlers"`
	Workqueue WorkqueueView `json:"workqueue"`
	Workers   WorkersView   `json:"workers"`
	Election  ElectionView  `json:"election"`
	Settings  SettingsView  `json:"settings"`
	Code      CodeView      `json:"code"`
	Lesson    *LessonView   `json:"lesson"`
	Counters  CountersView  `json:"counters"`
	Hops      []HopView     `json:"hops"`
	Plot      PlotView      `json:"plot"`
}

// HeldHop is a hop that waits for a step.
type HeldHop struct {
	Hop  string `json:"hop"`
	What string `json:"what"`
	Key  string `json:"key"`
	RV   string `json:"rv"`
}

// ServerView is the server with the end of its log.
type ServerView struct {
	Up        bool          `json:"up"`
	RV        string        `json:"rv"`
	Objects   int           `json:"objects"`
	Fault     string        `json:"fault"`
	Compacted string        `json:"compacted"`
	Log       []ServerEvent `json:"log"`
}

// ServerEvent is one write.
type ServerEvent struct {
	RV   string `json:"rv"`
	Type string `json:"type"`
	Key  string `json:"key"`
}

// ReflectorView is the reflector's state machine.
type ReflectorView struct {
	Phase      string     `json:"phase"`
	From       string     `json:"from"`
	Reason     string     `json:"reason"`
	Since      time.Time  `json:"since"`
	RV         string     `json:"rv"`
	BackoffMs  float64    `json:"backoffMs"`
	Failures   int        `json:"failures"`
	Error      string     `json:"error"`
	WatchSince *time.Time `json:"watchSince"`
	Kind       *KindView  `json:"kind,omitempty"` // nil unless it is a custom one

	Namespaces []NamespaceView `json:"namespaces,omitempty"` // nil: there is one reflector for all
}

// NamespaceView is one namespace of an informer of namespaces. The store holds every change of it
// up to RV.
type NamespaceView struct {
	Name    string `json:"name"`
	Phase   string `json:"phase"` // of its reflector
	RV      string `json:"rv"`
	Synced  bool   `json:"synced"`
	LeftOut bool   `json:"leftOut,omitempty"`
	Error   string `json:"error,omitempty"`
}

// KindView says whether the server serves a custom kind.
type KindView struct {
	Resource string `json:"resource"`
	Phase    string `json:"phase"` // of package served
	Reason   string `json:"reason"`
}

// QueueView is the queue between reflector and store.
type QueueView struct {
	Kind   string      `json:"kind"`
	Hold   bool        `json:"hold"`
	Keys   int         `json:"keys"`
	Deltas int         `json:"deltas"`
	Items  []QueueItem `json:"items"`
}

// QueueItem is a key with its deltas, oldest first.
type QueueItem struct {
	Key    string       `json:"key"`
	Deltas []QueueDelta `json:"deltas"`
}

// QueueDelta is one change.
type QueueDelta struct {
	Type string `json:"type"`
	RV   string `json:"rv"`
}

// StoreView is the store with one index. It holds every change up to RV, and everything that the
// collection held at AsOf; nil means that a change may be missing.
type StoreView struct {
	Objects int         `json:"objects"`
	RV      string      `json:"rv"`
	AsOf    *time.Time  `json:"asOf"`
	Items   []StoreItem `json:"items"`
	Index   IndexView   `json:"index"`
}

// StoreItem is a stored object.
type StoreItem struct {
	Key    string   `json:"key"`
	RV     string   `json:"rv"`
	Values []string `json:"values"` // what the index function of the shown index returns
}

// IndexView is an index of the store.
type IndexView struct {
	Name   string       `json:"name"`
	Values []IndexValue `json:"values"`
}

// IndexValue is an indexed value with the keys of its objects.
type IndexValue struct {
	Value string   `json:"value"`
	N     int      `json:"n"`
	Keys  []string `json:"keys"`
}

// LogView is the end of the change log that the handlers read.
type LogView struct {
	Items []LogItem `json:"items"`
}

// LogItem is a change.
type LogItem struct {
	What string `json:"what"`
	Key  string `json:"key"`
	RV   string `json:"rv"`
}

// HandlerView is a handler with its backlog.
type HandlerView struct {
	Name     string  `json:"name"`
	Pending  int     `json:"pending"`
	OldestMs float64 `json:"oldestMs"`
	DelayMs  float64 `json:"delayMs"`
	Panics   int     `json:"panics"`
}

// WorkqueueView is the workqueue, as keys.
type WorkqueueView struct {
	Queued       int           `json:"queued"`
	Queue        []string      `json:"queue"`
	Dirty        []string      `json:"dirty"`
	Processing   []string      `json:"processing"`
	Delayed      []DelayedView `json:"delayed"`
	DelayedTotal int           `json:"delayedTotal"`
	Limited      int           `json:"limited"`
	Limiter      string        `json:"limiter"`
	Requeues     []RequeueView `json:"requeues"`
	Bucket       BucketView    `json:"bucket"`
	ShutDown     *ShutDownView `json:"shutDown"`

	Groups      []GroupView    `json:"groups,omitempty"`      // those with the most keys
	GroupsTotal int            `json:"groupsTotal,omitempty"` // their number
	Priorities  map[string]int `json:"priorities,omitempty"`  // of keys in Queue, if not 0
}

// GroupView is a group of a fair workqueue.
type GroupView struct {
	Name    string `json:"name"`
	Queued  int    `json:"queued"`
	Working int    `json:"working"`
}

// RequeueView is a key with failures that are not forgotten: n is its NumRequeues.
type RequeueView struct {
	Key    string  `json:"key"`
	N      int     `json:"n"`
	NextMs float64 `json:"nextMs"`
}

// ShutDownView is a workqueue that the reader has shut down.
type ShutDownView struct {
	Drain   bool `json:"drain"`   // ShutDownWithDrain was called
	Ended   bool `json:"ended"`   // and has returned
	Refused int  `json:"refused"` // calls of Add since
}

// DelayedView is a key with a delay.
type DelayedView struct {
	Key      string  `json:"key"`
	DueMs    float64 `json:"dueMs"`
	Failures int     `json:"failures"`
	NextMs   float64 `json:"nextMs"`
	Stale    string  `json:"stale,omitempty"` // the version of a copy that is known to be old
}

// BucketView is the token bucket that delays all failed keys.
type BucketView struct {
	Tokens    float64 `json:"tokens"` // negative: so many keys wait for one
	Burst     int     `json:"burst"`  // 0 without a bucket
	PerSecond float64 `json:"perSecond"`
}

// WorkersView is what the workers do.
type WorkersView struct {
	Count            int               `json:"count"`
	Ended            int               `json:"ended"` // because the workqueue is shut down
	Running          []RunningView     `json:"running"`
	Fault            Fault             `json:"fault"`
	DeadLetters      []DeadLetterView  `json:"deadLetters"`
	DeadLettersTotal int               `json:"deadLettersTotal"`
	Outcomes         map[string]uint64 `json:"outcomes"`
}

// RunningView is a call of reconcile.
type RunningView struct {
	Key string  `json:"key"`
	Ms  float64 `json:"ms"`
}

// DeadLetterView is a key that was given up.
type DeadLetterView struct {
	Key      string `json:"key"`
	Reason   string `json:"reason"`
	Attempts int    `json:"attempts"`
	Error    string `json:"error"`
}

// ElectionView is the leader election.
type ElectionView struct {
	On         bool     `json:"on"`
	Identity   string   `json:"identity"`
	Leader     string   `json:"leader"`
	Leading    bool     `json:"leading"`
	LeftMs     float64  `json:"leftMs"`
	DurationMs float64  `json:"durationMs"`
	RenewedMs  float64  `json:"renewedMs"`
	ObservedMs float64  `json:"observedMs"`
	Token      int      `json:"token"`
	Paused     bool     `json:"paused"`
	Candidates []string `json:"candidates"`

	PausedNames []string           `json:"pausedNames"`
	CutNames    []string           `json:"cutNames"`
	OutNames    []string           `json:"outNames"`
	States      map[string]string  `json:"states"`   // by candidate: leads, holds, waits or stopped
	Observed    map[string]float64 `json:"observed"` // by candidate that looks at the lease: ms
	Holder      string             `json:"holder"`
	DeadlineMs  float64            `json:"deadlineMs"`
	OpenMs      float64            `json:"openMs"`
	Writes      []LeaseWrite       `json:"writes"`
	Refusals    int                `json:"refusals"`
	Releases    int                `json:"releases"`
	Fence       FenceView          `json:"fence"`
}

// LeaseWrite is a write of the lease that gave it another holder, or that the server refused.
type LeaseWrite struct {
	By     string `json:"by"`
	RV     string `json:"rv"`     // the resourceVersion in the request: the version to replace
	Holder string `json:"holder"` // the holderIdentity in the request
	Code   int    `json:"code"`   // of the answer
}

// FenceView is the receiver of the leaders' writes.
type FenceView struct {
	Writes  int `json:"writes"`
	Token   int `json:"token"`
	Refused int `json:"refused"`
}

// SettingsView is the content of the settings dialog.
type SettingsView struct {
	Settings
	Rate    float64 `json:"rate"`
	Objects int     `json:"objects"`
	Faults  string  `json:"faults"` // the random ones: on, off, or paused (by a lesson)
}

// LessonView is the lesson that is played.
type LessonView struct {
	ID    string   `json:"id"`
	Step  int      `json:"step"`
	State string   `json:"state"`
	Wrong int      `json:"wrong,omitempty"`
	Error string   `json:"error,omitempty"`
	Watch []string `json:"watch"`

	Stop *StopView `json:"stop,omitempty"`

	solved bool // the reader does not take part
}

// CountersView counts the events since the page was opened.
type CountersView struct {
	Events    int     `json:"events"`
	Shown     int     `json:"shown"`
	PerSecond float64 `json:"perSecond"`
}

// HopView is an event.
type HopView struct {
	N      int       `json:"n"`
	Time   time.Time `json:"t"`
	Hop    string    `json:"hop"`
	What   string    `json:"what"`
	Key    string    `json:"key"`
	RV     string    `json:"rv"`
	Detail string    `json:"detail"`
	Error  string    `json:"error"`

	Fact string            `json:"fact,omitempty"` // see fact
	Args map[string]string `json:"args,omitempty"`
}

// PlotView is a sample for the plots.
type PlotView struct {
	Depth     int     `json:"depth"`
	Backlog   int     `json:"backlog"`
	Retries   int     `json:"retries"`
	PerSecond float64 `json:"perSecond"`
}
