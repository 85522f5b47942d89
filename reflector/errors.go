// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Errors that a WatchErrorHandler, an observer or Status may show besides those of the server.
var (
	// ErrWatchSilent is the end of a watch that the server should have ended long ago: its
	// connection is dead.
	ErrWatchSilent = errors.New("watch is silent past its timeout")
	// ErrStreamUnfinished is the end of a streaming list that never said that the initial state is
	// complete.
	ErrStreamUnfinished = errors.New("streaming list has no end of the initial events")
	// errNothingNew is the end of a watch that lasted less than a second and brought events, but no
	// change.
	errNothingNew = errors.New("watch lasted less than a second and brought no change")
	// errUnreachable is the end of a watch that rest made because it could not reach the server.
	errUnreachable = errors.New("server cannot be reached")
	// ErrRunning is returned by ListAndWatch while the reflector runs already.
	ErrRunning = errors.New("reflector is running already")
)

// VeryShortWatchError is the end of a watch that lasted less than a second and brought nothing.
//
// Source: tools/cache/reflector.go VeryShortWatchError
type VeryShortWatchError struct {
	Name string // of the reflector
}

// Error says so in client-go's words.
func (e *VeryShortWatchError) Error() string {
	const text = "very short watch: %s: Unexpected watch close - " +
		"watch lasted less than a second and no items received"
	return fmt.Sprintf(text, e.Name)
}

// ApplyError is a change that was received and not taken: the transform failed, or the Store, or
// the consumer behind the Store (see Reflector.Relist). Nothing is lost: the reflector lists again.
type ApplyError struct {
	Verb   string // transform, add, update, delete, bookmark, replace, resync or process
	Object string // namespace/name of the object; "" when the change concerns them all
	Err    error
}

// Error names the verb, the object and the cause.
func (e *ApplyError) Error() string {
	if e.Object == "" {
		return fmt.Sprintf("%s: %v", e.Verb, e.Err)
	}
	return fmt.Sprintf("%s %s: %v", e.Verb, e.Object, e.Err)
}

// Unwrap returns the cause.
func (e *ApplyError) Unwrap() error { return e.Err }

var errNilResult = errors.New("result is nil")

func isApplyError(err error) bool {
	var applyErr *ApplyError
	return errors.As(err, &applyErr)
}

// causeDecoding marks the ERROR event that a client makes itself when it cannot read on from a
// watch: a frame that cannot be decoded, or a connection that was lost. To a reader it looks like
// an InternalError.
//
// Source: rest/request.go Request
const causeDecoding metav1.CauseType = "ClientWatchDecoding"

func isDecodingError(err error) bool { return apierrors.HasStatusCause(err, causeDecoding) }

// isAnswer reports that err was sent by the server.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !isDecodingError(err)
}

// isExpired reports a 410: the server has forgotten the resourceVersion. Old servers say Gone
// instead of Expired.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

const tooLarge = "Too large resource version"

// isTooLarge reports that the server has not yet reached the resourceVersion. Servers since 1.19
// give a typed cause, 1.17 and 1.18 the cause's text, older ones a text somewhere in the message.
func isTooLarge(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsTimeout(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Message == tooLarge {
			return true
		}
	}
	return strings.Contains(status.Status().Message, tooLarge)
}

// isUnavailable reports that a request cannot be served at its resourceVersion, but can at another.
func isUnavailable(err error) bool { return isExpired(err) || isTooLarge(err) }

// isBusy reports that the server cannot answer for now, so that what was asked should be asked
// again later.
func isBusy(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// isRefusal reports that the server does not understand a streaming list, and never will: an old
// server, or one that implements no more than LIST and WATCH.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err)
}

// maxErrorText is how many bytes of an error's text are kept and logged. A server may send any
// number.
const maxErrorText = 1 << 10

// bounded returns err, or a short copy if its text is longer than maxErrorText, so that what Status
// keeps is small. errors.Is and errors.As find in the copy what they would find in err, of: the API
// status, an ApplyError, a VeryShortWatchError, the errors of this package, and a system call's
// error number.
func bounded(err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	isStatus := errors.As(err, &status)
	text := err.Error()
	if len(text) <= maxErrorText && !(isStatus && isLarge(status.Status())) {
		return err
	}
	short := &shortError{text: cut(text)}
	if applyErr, ok := errors.AsType[*ApplyError](err); ok {
		short.causes = append(short.causes, &ApplyError{
			Verb: applyErr.Verb, Object: cut(applyErr.Object), Err: bounded(applyErr.Err),
		})
	} else if isStatus {
		short.causes = append(short.causes, shortStatus(status.Status()))
	}
	if veryShort, ok := errors.AsType[*VeryShortWatchError](err); ok {
		short.causes = append(short.causes, veryShort)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		short.causes = append(short.causes, errno)
	}
	for _, known := range []error{
		errClosedEarly, ErrStreamUnfinished, ErrWatchSilent, errNothingNew, errNilResult, errTable,
	} {
		if errors.Is(err, known) {
			short.causes = append(short.causes, known)
		}
	}
	return short
}

// shortError is the copy of an error whose text was too long.
type shortError struct {
	text   string
	causes []error
}

func (e *shortError) Error() string   { return e.text }
func (e *shortError) Unwrap() []error { return e.causes }

// isLarge reports that a status holds more than its message: the causes in its details can be many.
func isLarge(status metav1.Status) bool { return status.Size() > 4*maxErrorText }

// shortStatus returns what callers ask of an API error: its code and reason, the delay, and the
// first causes' types.
func shortStatus(status metav1.Status) *apierrors.StatusError {
	short := metav1.Status{
		Status: cut(status.Status), Code: status.Code,
		Reason: metav1.StatusReason(cut(string(status.Reason))), Message: cut(status.Message),
	}
	if details := status.Details; details != nil {
		short.Details = &metav1.StatusDetails{
			Name: cut(details.Name), Group: cut(details.Group), Kind: cut(details.Kind),
			RetryAfterSeconds: details.RetryAfterSeconds,
		}
		for _, cause := range details.Causes[:min(len(details.Causes), 4)] {
			short.Details.Causes = append(short.Details.Causes, metav1.StatusCause{
				Type:    metav1.CauseType(cut(string(cause.Type))),
				Message: cut(cause.Message), Field: cut(cause.Field),
			})
		}
	}
	return &apierrors.StatusError{ErrStatus: short}
}

// cut returns text, or a copy of its beginning that says how long it was.
func cut(text string) string {
	if len(text) <= maxErrorText {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + fmt.Sprintf("… (%d bytes)", len(text))
}
