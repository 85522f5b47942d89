// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/workqueue"
)

// AddInformer shows an informer on the page. "" names it as it names itself.
func (h *Handler) AddInformer(name string, subject interface{ Status() informer.Status }) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.informers = append(h.informers, func() Informer { return describeInformer(name, subject.Status()) })
}

// AddQueue shows a workqueue on the page that no controller shows. If it has the method NumRequeues, waiting keys are shown
// with their failures.
func AddQueue[K comparable](h *Handler, name string, queue interface{ Snapshot() workqueue.Snapshot[K] }) {
	attempts := func(K) int { return 0 }
	if counter, ok := queue.(interface{ NumRequeues(K) int }); ok {
		attempts = counter.NumRequeues
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queues = append(h.queues, func() Queue {
		s := queue.Snapshot()
		return Queue{
			Name:       name,
			Ready:      list(s.Ready, printed[K]),
			Processing: list(s.Processing, printed[K]),
			Again:      list(s.Again, printed[K]),
			Waiting:    list(s.Waiting, func(w workqueue.Waiting[K]) WaitingKey { return describeWaiting(w, attempts) }),
		}
	})
}

// AddController shows a controller on the page, with its queue and its dead letters.
func AddController[K comparable](h *Handler, subject *controller.Controller[K]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.controllers = append(h.controllers, func() Controller { return describeController(subject) })
}

func describeInformer(name string, s informer.Status) Informer {
	if name == "" {
		name = s.Name
	}
	i := Informer{
		Name:                name,
		Started:             s.Started,
		Synced:              s.HasSynced,
		Stopped:             s.Stopped,
		Objects:             s.Objects,
		Phase:               s.Reflector.Phase,
		ResourceVersion:     s.Reflector.ResourceVersion,
		LastContact:         orNil(s.Reflector.LastContact),
		LastEvent:           orNil(s.Reflector.LastEvent),
		LastBookmark:        orNil(s.Reflector.LastBookmark),
		Failures:            s.Reflector.Failures,
		ConsecutiveFailures: s.Reflector.ConsecutiveFailures,
		Fallbacks:           s.Reflector.Fallbacks,
		LastErrorTime:       orNil(s.Reflector.LastErrorTime),
		LastError:           errorText(s.Reflector.LastError),
		Handlers:            make([]HandlerInfo, 0, len(s.Handlers)),
	}
	for _, handler := range s.Handlers {
		i.Handlers = append(i.Handlers, HandlerInfo{
			Name:                 handler.Name,
			Synced:               handler.HasSynced,
			Pending:              handler.Pending,
			OldestPendingSeconds: handler.OldestPending.Seconds(),
			Calls:                handler.Calls,
			Panics:               handler.Panics,
		})
	}
	return i
}

func describeController[K comparable](subject *controller.Controller[K]) Controller {
	s, queue := subject.Snapshot(), subject.Queue()
	c := Controller{
		Name:    s.Name,
		Phase:   s.Phase,
		Ready:   list(s.Ready, printed[K]),
		Waiting: list(s.Waiting, func(w workqueue.Waiting[K]) WaitingKey { return describeWaiting(w, queue.NumRequeues) }),
		Running: list(s.Running, func(r controller.Running[K]) RunningKey {
			return RunningKey{Key: printed(r.Key), ReconcileID: string(r.ReconcileID), Since: r.Since}
		}),
		Failing: list(s.Failing, func(f controller.Failing[K]) FailingKey {
			return FailingKey{Key: printed(f.Key), Attempts: f.Attempts, Since: f.First.Time, Last: f.Last.Time, LastError: errorText(f.Last.Err)}
		}),
		DeadLetters: list(subject.DeadLetters().List(), func(d controller.DeadLetter[K]) DeadLetter {
			return DeadLetter{
				Key: printed(d.Key), Reason: d.Reason, Attempts: d.Attempts,
				Since: d.First.Time, Last: d.Last.Time, LastError: errorText(d.Last.Err),
			}
		}),
		Evicted:   s.Evicted,
		KeyErrors: s.KeyErrors,
		Outcomes:  map[string]uint64{},
	}
	c.Ready.Total = max(c.Ready.Total, s.Queued) // of a queue that does not tell, at least how many
	for outcome, count := range s.Outcomes {
		c.Outcomes[string(outcome)] = count
	}
	for _, cache := range s.Missing {
		c.Missing = append(c.Missing, MissingCache{Name: cache.Name, Error: errorText(cache.Err)})
	}
	return c
}

func describeWaiting[K comparable](w workqueue.Waiting[K], attempts func(K) int) WaitingKey {
	return WaitingKey{Key: printed(w.Item), Due: w.Due, Attempts: attempts(w.Item)}
}

func list[S, T any](from []S, describe func(S) T) List[T] {
	l := List[T]{Total: len(from), Items: make([]T, 0, len(from))}
	for _, item := range from {
		l.Items = append(l.Items, describe(item))
	}
	return l
}

func printed[K comparable](key K) string { return fmt.Sprint(key) }

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
