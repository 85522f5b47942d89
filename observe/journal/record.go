// SPDX-License-Identifier: Apache-2.0

package journal

import "time"

// Call is a call of a handler.
type Call struct {
	Time     time.Time     `json:"time"`
	Duration time.Duration `json:"durationNanoseconds"` // 0 while it runs
	Informer string        `json:"informer"`
	Handler  string        `json:"handler"`
	Kind     Kind          `json:"kind"`
	Key      string        `json:"key"`
	// ResourceVersion is that of the object, and Was the one before an update.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Was             string `json:"was,omitempty"`
	// Queued is when the informer queued the change for the handler; zero if it is not known.
	Queued time.Time `json:"queued,omitzero"`
	// Number counts the calls of the handler for the object, those that were dropped included. It
	// begins with 1.
	Number int `json:"number"`
	// Fields are the paths of the changed fields, without their values, and Managers the owners of
	// the change in managedFields. Both are nil if they are not known; see fields.go.
	Fields   []string `json:"fields,omitempty"`
	Managers []string `json:"managers,omitempty"`
	// Added has "queue key" for each key that the handler added in the call.
	Added []string `json:"added"`
	// Text is String, in an answer about a key.
	Text string `json:"text,omitempty"`

	keys []QueueKey // Added
}

// QueueKey is a key of a queue.
type QueueKey struct{ Queue, Key string }

// Keys returns Added. It is empty for a call that was read from JSON.
func (c Call) Keys() []QueueKey { return c.keys }

// Cause is the reason of one Add.
type Cause struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Call is the call of a handler that added the key, or nil.
	Call *Call `json:"call,omitempty"`
	// By is the function that added the key outside of handlers and workers, or the key that a
	// worker had when it added this one.
	By string `json:"by,omitempty"`
	// Delay is that of AddAfter, and Error that of a retry, if the queue knows it.
	Delay time.Duration `json:"delayNanoseconds,omitempty"`
	Error string        `json:"error,omitempty"`

	call *call // Call
}

// Limited is a call of AddRateLimited, which the limiter of a queue counts as a failure.
type Limited struct {
	Time  time.Time `json:"time"`
	Place string    `json:"place"` // the function that called it, and its line
	// Kind is Retry if the call ended a reconcile of the key. Otherwise By says where it was made.
	Kind Kind   `json:"kind"`
	By   string `json:"by,omitempty"`
}

func (l *Limited) note(c Cause) {
	switch l.Kind = c.Kind; {
	case c.call != nil:
		l.By = "handler " + c.call.handlerName()
	case c.Kind == ByWorker:
		l.By = "the worker that had " + c.By
	case c.Kind == Program:
		l.By = "no call of a handler and no reconcile"
	}
}

// Kind says what a handler was called for, or what else added a key.
type Kind string

// The kinds of Calls, and then those of other Causes.
const (
	InitialList Kind = "initial list" // OnAdd, isInInitialList
	Added       Kind = "add"
	Updated     Kind = "update"
	Deleted     Kind = "delete"
	Tombstone   Kind = "tombstone" // OnDelete, and the delete itself was missed
	Resync      Kind = "resync"    // OnUpdate with the same object twice
	Relist      Kind = "relist"    // OnUpdate with the same resourceVersion twice

	Retry    Kind = "retry"     // AddRateLimited by the worker of the key
	Delay    Kind = "delay"     // AddAfter by the worker of the key
	ByWorker Kind = "worker"    // by a worker, also with Add of its own key
	Program  Kind = "program"   // by any other goroutine
	NotKnown Kind = "not known" // added before the recording began, or merged with the one before
)

// Reconcile is the time from Get to Done of a key.
type Reconcile struct {
	Queue    string        `json:"queue"`
	Key      string        `json:"key"`
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"durationNanoseconds"` // 0 while it runs
	Causes   []Cause       `json:"causes"`
	More     int           `json:"moreCauses,omitempty"`
	Result   Result        `json:"result"`
	Error    string        `json:"error,omitempty"`
	// Beside is another key that the goroutine had when it reported an error, which may be about
	// either. The error is not kept.
	Beside string `json:"beside,omitempty"`
	// Returned says that reconcile has returned the Error.
	Returned bool `json:"returned,omitempty"`
	// Requests are those that its goroutine has sent through Journal.Writes: the first ones and the
	// last. MoreRequests were sent between them.
	Requests     []*Request `json:"requests,omitempty"`
	MoreRequests int        `json:"moreRequests,omitempty"`
	// Text is String, in an answer about a key.
	Text string `json:"text,omitempty"`

	forgotten bool
	byOther   bool // another goroutine than that of the worker has called AddRateLimited
	bytes     int  // see size
	exact     bool // the Error was returned, or the queue got it
}

// Request is a request to the API server, without its parameters and its body.
type Request struct {
	Time time.Time `json:"time"`
	// Duration is the time until the headers of the answer; 0 while they are awaited.
	Duration time.Duration `json:"durationNanoseconds"`
	Method   string        `json:"method"`
	// Path ends with the subresource: what a proxy would pass on is not kept.
	Path string `json:"path"`
	// Status is that of the answer, and Error what happened in place of an answer.
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Result is how a reconcile ended, as far as the queue knows.
type Result string

const (
	Running   Result = "running"   // no Done yet
	Forgotten Result = "forgotten" // Forget, and no retry: a success, or the key was given up
	Retried   Result = "retried"   // AddRateLimited
	Postponed Result = "postponed" // AddAfter
	NoForget  Result = "noForget"  // Done, and neither of the three
)
