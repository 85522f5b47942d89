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
