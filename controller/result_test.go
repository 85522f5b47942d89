// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"example.com/informerstack/workqueue"
)

// recordingQueue writes down what a controller asks of its queue.
type recordingQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	calls []string
}

func (q *recordingQueue) note(format string, args ...any) {
	q.calls = append(q.calls, fmt.Sprintf(format, args...))
}

func (q *recordingQueue) Get() (string, bool) {
	key, shutdown := q.TypedRateLimitingInterface.Get()
	q.note("Get")
	return key, shutdown
}

func (q *recordingQueue) Done(key string) {
	q.note("Done")
	q.TypedRateLimitingInterface.Done(key)
}

func (q *recordingQueue) Forget(key string) {
	q.note("Forget")
	q.TypedRateLimitingInterface.Forget(key)
}

func (q *recordingQueue) AddAfter(key string, delay time.Duration) { q.note("AddAfter %v", delay) }

func (q *recordingQueue) AddRateLimited(key string) { q.note("AddRateLimited") }

// Each row is what controller-runtime's reconcileHandler does with that answer.
func TestResultRules(t *testing.T) {
	for name, tc := range map[string]struct {
		result    Result
		err       error
		panics    bool
		opts      Options[string]
		wantCalls []string // between Get and Done
		want      Report
	}{
		"success": {
			wantCalls: []string{"Forget"},
			want:      Report{Outcome: OutcomeSuccess},
		},
		"requeue after": {
			result:    Result{RequeueAfter: time.Minute},
			wantCalls: []string{"Forget", "AddAfter 1m0s"},
			want:      Report{Outcome: OutcomeRequeueAfter},
		},
		"negative requeue after is success": {
			result:    Result{RequeueAfter: -time.Minute},
			wantCalls: []string{"Forget"},
			want:      Report{Outcome: OutcomeSuccess},
		},
		"error": {
			err:       errBoom,
			wantCalls: []string{"AddRateLimited"},
			want:      Report{Outcome: OutcomeError},
		},
		"error beats requeue after": {
			result:    Result{RequeueAfter: time.Minute},
			err:       errBoom,
			wantCalls: []string{"AddRateLimited"},
			want:      Report{Outcome: OutcomeError},
		},
		"terminal error is not forgotten by the limiter": {
			err:  TerminalError(errBoom),
			want: Report{Outcome: OutcomeError, Terminal: true, DeadLetter: Terminal},
		},
		"terminal error inside another": {
			err:  errors.Join(errBoom, fmt.Errorf("apply: %w", TerminalError(errBoom))),
			want: Report{Outcome: OutcomeError, Terminal: true, DeadLetter: Terminal},
		},
		"terminal error without a cause": {
			err:  TerminalError(nil),
			want: Report{Outcome: OutcomeError, Terminal: true, DeadLetter: Terminal},
		},
		"panic": {
			panics:    true,
			wantCalls: []string{"AddRateLimited"},
			want:      Report{Outcome: OutcomeError, Panicked: true},
		},
		"panic under DeadLetterOnPanic": {
			panics:    true,
			opts:      Options[string]{Panic: DeadLetterOnPanic},
			wantCalls: []string{"Forget"},
			want:      Report{Outcome: OutcomeError, Panicked: true, DeadLetter: Panicked},
		},
		"last attempt": {
			err:       errBoom,
			opts:      Options[string]{MaxAttempts: 1},
			wantCalls: []string{"Forget"},
			want:      Report{Outcome: OutcomeError, DeadLetter: MaxAttempts},
		},
		"a reconcile that returns a PanicError has not panicked": {
			err:       &PanicError{Value: "x"},
			opts:      Options[string]{Panic: DeadLetterOnPanic},
			wantCalls: []string{"AddRateLimited"},
			want:      Report{Outcome: OutcomeError},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options[string]{})
				queue := &recordingQueue{}
				tc.opts.Metrics.End = w.end
				tc.opts.NewQueue = func(name string, limiter stringLimiter) stringQueue {
					queue.TypedRateLimitingInterface = defaultQueue(name, limiter)
					return queue
				}
				w.c.queue.ShutDown()
				w.c = New("rules", func(context.Context, string) (Result, error) {
					if tc.panics {
						panic("x")
					}
					return tc.result, tc.err
				}, tc.opts)
				defer w.c.queue.ShutDown()
				w.c.Enqueue("a")
				ctx := klog.NewContext(t.Context(), klog.Logger{})
				assert.True(t, w.c.processNextWorkItem(w.c.newShift(ctx, ctx)))

				want := append(append([]string{"Get"}, tc.wantCalls...), "Done")
				assert.Equal(t, want, queue.calls)
				assert.Equal(t, []Report{tc.want}, w.reported())
			})
		})
	}
}

func TestTerminalError(t *testing.T) {
	err := fmt.Errorf("apply: %w", TerminalError(errBoom))
	assert.EqualError(t, err, "apply: terminal error: boom")
	assert.ErrorIs(t, err, TerminalError(nil))
	assert.ErrorIs(t, err, errBoom)

	assert.EqualError(t, TerminalError(nil), "terminal error")
	assert.NotErrorIs(t, errBoom, TerminalError(nil))
}

func TestPanicErrorUnwrapsErrorsAlone(t *testing.T) {
	assert.ErrorIs(t, &PanicError{Value: errBoom}, errBoom)
	assert.NoError(t, (&PanicError{Value: "text"}).Unwrap())
}

// CrashOnPanic leaves the panic to the runtime, and the key is not in processing for ever.
func TestCrashOnPanic(t *testing.T) {
	reconcile := func(context.Context, string) (Result, error) { panic("x") }
	c := New("crash", reconcile, Options[string]{Panic: CrashOnPanic})
	defer c.queue.ShutDown()
	c.Enqueue("a")
	shift := c.newShift(t.Context(), t.Context())
	assert.PanicsWithValue(t, "x", func() { c.processNextWorkItem(shift) })
	c.Enqueue("a")
	assert.Equal(t, 1, c.queue.Len())
}

// The context that reconcile gets knows its identity, and so does its logger.
func TestReconcileContext(t *testing.T) {
	assert.Empty(t, ReconcileIDFromContext(t.Context()))
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		var log bytes.Buffer
		w := newWorld(t, Options[string]{})
		w.c.reconcile = func(ctx context.Context, key string) (Result, error) {
			id := string(ReconcileIDFromContext(ctx))
			assert.Len(t, id, 36)
			assert.EqualValues(t, id, w.c.Snapshot().Running[0].ReconcileID)
			ids = append(ids, id)
			klog.FromContext(ctx).Info("hello")
			return Result{}, errBoom
		}
		w.runWith(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		w.change("a", "b")
		w.stop()
		require.Len(t, ids, 2)
		assert.NotEqual(t, ids[0], ids[1])
		for i, key := range []string{"a", "b"} {
			call := fmt.Sprintf(` controller="story" key="%s" reconcileID="%s"`, key, ids[i])
			assert.Contains(t, log.String(), `"hello"`+call)
			assert.Contains(t, log.String(), `trying again later" err="boom"`+call)
		}
	})
}
