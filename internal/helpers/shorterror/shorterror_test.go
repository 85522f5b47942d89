// SPDX-License-Identifier: Apache-2.0

package shorterror

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"example.com/informerstack/internal/tools/measure"
)

var long = strings.Repeat("ä", 1<<19)

// A short error is kept as it is. A copy of a long one keeps what callers ask for.
func TestOf(t *testing.T) {
	require.NoError(t, Of(nil))
	busy := apierrors.NewTooManyRequests("slow down", 7)
	require.Same(t, busy, Of(busy))

	status := Of(fmt.Errorf("list: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: long,
		Details: &metav1.StatusDetails{
			RetryAfterSeconds: 7, Causes: []metav1.StatusCause{{Type: "First", Message: long}},
		},
	}}))
	require.True(t, apierrors.IsTooManyRequests(status))
	require.True(t, apierrors.HasStatusCause(status, "First"))
	seconds, ok := apierrors.SuggestsClientDelay(status)
	require.True(t, ok)
	require.Equal(t, 7, seconds)

	manyCauses := apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("short"))
	manyCauses.ErrStatus.Details.Causes = make([]metav1.StatusCause, 1<<16)
	conflict := Of(fmt.Errorf("update: %w", manyCauses))
	require.True(t, apierrors.IsConflict(conflict))
	require.NotErrorIs(t, conflict, manyCauses)

	refused := Of(&url.Error{Op: "Get", URL: "/" + long, Err: syscall.ECONNREFUSED})
	require.True(t, utilnet.IsConnectionRefused(refused))
	inner := fmt.Errorf("read: %w", io.ErrUnexpectedEOF)
	both := Of(fmt.Errorf("%s: %w: %w", long, inner, busy))
	require.ErrorIs(t, both, inner)
	require.ErrorIs(t, both, io.ErrUnexpectedEOF)
	require.True(t, apierrors.IsTooManyRequests(both))
	require.NotErrorIs(t, both, io.EOF)

	for _, err := range []error{status, conflict, refused, both} {
		require.Less(t, len(err.Error()), 4*maxTextBytes)
		require.True(t, strings.ToValidUTF8(err.Error(), "?") == err.Error())
	}
}

// An error is copied beyond each bound, and kept below it: of its text, of its status, of the
// status's causes, and of what it wraps. The copy has the first of them, in their order.
func TestOf_AroundTheBounds(t *testing.T) {
	for n := maxTextBytes - 1; n <= maxTextBytes+1; n++ {
		text := strings.Repeat("x", n)
		err := Of(fmt.Errorf("%s%w", text[:n-len(io.EOF.Error())], io.EOF))
		require.Equal(t, n <= maxTextBytes, len(err.Error()) == n && Fits(err), "%d bytes", n)
		require.True(t, strings.HasPrefix(err.Error(), text[:maxTextBytes/2]))
		require.ErrorIs(t, err, io.EOF)
	}
	for n := range 12 {
		err := apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("short"))
		details := err.ErrStatus.Details
		for i := range n {
			details.Causes = append(details.Causes, metav1.StatusCause{
				Type: metav1.CauseType(fmt.Sprint("Type", i)), Message: strings.Repeat("m", 500),
				Field: fmt.Sprint("spec.", i)})
		}
		got := Of(err)
		if err.ErrStatus.Size() <= maxStatusBytes {
			require.Same(t, err, got)
			continue
		}
		require.Greater(t, n, 4)
		var status *apierrors.StatusError
		require.ErrorAs(t, got, &status)
		require.Equal(t, details.Causes[:4], status.ErrStatus.Details.Causes)
		require.Equal(t, "a", status.ErrStatus.Details.Name)
		require.Equal(t, metav1.StatusReasonConflict, status.ErrStatus.Reason)
		require.EqualValues(t, 409, status.ErrStatus.Code)
		require.Equal(t, metav1.StatusFailure, status.ErrStatus.Status)
	}
	for n := range 3 * maxCauses {
		errs := []error{errors.New(long)}
		for i := range n {
			errs = append(errs, fmt.Errorf("error %d", i))
		}
		got := Of(errors.Join(errs...)).(*shortError).causes
		require.Equal(t, errs[1:1+min(n, maxCauses)], append([]error{}, got...))
	}
}

// The copy of many errors in one has a bounded number of them.
func TestOf_ManyErrors(t *testing.T) {
	measure.Growth(t, 10_000, func(n int) {
		errs := make([]error, n)
		for i := range errs {
			errs[i] = fmt.Errorf("error %d", i)
		}
		short := Of(errors.Join(errs...))
		require.Len(t, short.(*shortError).causes, maxCauses)
		require.Less(t, len(short.Error()), 4*maxTextBytes)
	})
}
