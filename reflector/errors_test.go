// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/printable"
)

const maxErrorText = 4 * printable.MaxRunes

// hugeStatus is an answer of a server that does not mean well.
func hugeStatus(size int) *apierrors.StatusError {
	huge := strings.Repeat("ä", size/2)
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests,
		Message: huge,
		Details: &metav1.StatusDetails{
			RetryAfterSeconds: 7, Causes: []metav1.StatusCause{{Type: "First", Message: huge}},
		},
	}}
}

// The copy of a long ApplyError is one, with the same causes.
func TestBounded(t *testing.T) {
	require.NoError(t, bounded(nil))
	require.Same(t, apiErrors["429"], bounded(apiErrors["429"]))
	long := strings.Repeat("x", 1<<20)
	cause := fmt.Errorf("%s: %w", long, syscall.ENOSPC)
	applied := bounded(&ApplyError{Verb: "add", Object: long, Err: cause})
	var applyErr *ApplyError
	require.ErrorAs(t, applied, &applyErr)
	require.Equal(t, "add", applyErr.Verb)
	require.ErrorIs(t, applied, syscall.ENOSPC)
	require.Less(t, len(applied.Error()), 3*maxErrorText)

	short := &VeryShortWatchError{Name: "pods"}
	unfinished := bounded(fmt.Errorf("%s: %w: %w", long, ErrStreamUnfinished, short))
	require.ErrorIs(t, unfinished, ErrStreamUnfinished)
	require.ErrorAs(t, unfinished, new(*VeryShortWatchError))
	require.NotErrorIs(t, unfinished, errClosedEarly)
	require.Less(t, len(unfinished.Error()), 2*maxErrorText)
}

// A server's error is kept and logged up to a length, and has the same effect however long it is.
func TestStatus_DoesNotKeepALongError(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		logged := s.bufferLogs(9)
		var reportedText string
		reported = func(err error, _ string) { reportedText = err.Error() }
		s.watching()
		s.event(watch.Event{Type: watch.Error, Object: statusOf(hugeStatus(16 << 20))})
		s.after(time.Second)
		// A 429 is followed by a WATCH.
		s.answerWatch(fmt.Errorf("%s: %w", strings.Repeat("x", 1<<20), io.ErrClosedPipe))
		require.Less(t, len(logged()), 100_000)
		require.NotEmpty(t, reportedText)
		require.Less(t, len(reportedText), 2*maxErrorText)
		require.Less(t, len(s.ours.Status().LastError.Error()), 2*maxErrorText)

		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.after(30 * time.Second)
		s.answerList(nil, hugeStatus(64<<20))
		require.True(t, apierrors.IsTooManyRequests(s.ours.Status().LastError))
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(8<<20))
	})
}

// Logs say what happened and what follows.
func TestLog_SaysWhatFollows(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(s *script)
		want string
	}{
		"a stream that is forbidden": {func(s *script) { s.streamFails("forbidden") },
			"Streaming list failed, trying LIST; the next relist streams again"},
		"a stream that is not supported": {func(s *script) { s.streamFails("invalid") },
			"Server does not support streaming lists, using LIST from now on"},
		"a watch that is refused": {func(s *script) {
			s.watching()
			s.after(time.Second)
			close(s.open.events)
			s.answerWatch(apiErrors["refused"])
		}, "Server is not available, opening the watch again after a wait"},
		"a connection that is lost": {func(s *script) { s.watching(); s.event(errorEvent("lost")) },
			"Watch ended, opening another at once"},
		"an expired watch": {func(s *script) { s.watching(); s.event(errorEvent("expired")) },
			"Watch expired, listing again after a wait"},
		"a watch that is forbidden": {
			func(s *script) { s.watching(); s.event(errorEvent("forbidden")) },
			"Watch ended with an error, listing again after a wait",
		},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, "ours", func(t *testing.T, s *script) {
				logged := s.bufferLogs(4)
				test.fail(s)
				s.take()
				require.Contains(t, logged(), test.want)
			})
		})
	}
}

// A LIST that takes long is logged, whatever its answer is; others are not.
func TestLog_SlowList(t *testing.T) {
	on(t, "ours", func(t *testing.T, s *script) {
		logged := s.bufferLogs(4)
		s.start()
		s.answerList(nil, apiErrors["broken"])
		s.after(time.Minute)
		s.answerList(podList("5", "", "a@1"), nil)
		require.Equal(t, 1, strings.Count(logged(), "LIST was slow"))
		require.Contains(t, logged(), "count=1")
	})
}

func (s *script) streamFails(name string) {
	s.streams()
	s.start()
	s.answerWatch(apiErrors[name])
}
