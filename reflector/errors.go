// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/internal/helpers/shorterror"
)

// Errors that a WatchErrorHandler, an observer or Status may show besides those of the server.
var (
	// ErrWatchSilent is the end of a watch that the server should have ended long ago: its
	// connection is dead.
	ErrWatchSilent = errors.New("watch is silent past its timeout")
	// ErrListSilent is the end of a LIST that brought nothing new within Options.ListDeadline.
	ErrListSilent = errors.New("LIST brings nothing new")
	// ErrStreamUnfinished is the end of a streaming list that never said that the initial state is
	// complete.
	ErrStreamUnfinished = errors.New("streaming list has no end of the initial events")
	// errNothingNew is the end of a watch that lasted less than a second and brought events, but no
	// change.
	errNothingNew = errors.New("watch lasted less than a second and brought no change")
	// errUnreachable is the end of a watch that rest made because it could not reach the server.
	errUnreachable = errors.New("server cannot be reached")
	// errTimeout is returned by receive at its timeout.
	errTimeout = errors.New("timeout")
	// ErrRunning is returned by ListAndWatch while the reflector runs already.
	ErrRunning = errors.New("reflector is running already")
)

// VeryShortWatchError is the end of a watch that lasted less than a second and brought nothing.
//
// Source: tools/cache/reflector.go VeryShortWatchError
type VeryShortWatchError struct {
	Name string // of the reflector
}

// Error returns client-go's text.
func (e *VeryShortWatchError) Error() string {
	const text = "very short watch: %s: Unexpected watch close - " +
		"watch lasted less than a second and no items received"
	return fmt.Sprintf(text, e.Name)
}

// ApplyError reports a received change that was not applied: the transform failed, or the Store, or
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

// isBusy reports that the server cannot answer at the moment, so the same request should be
// repeated later.
func isBusy(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// isOutage reports whether err may be a failure of the server: it could not be reached, the
// connection was lost, or it answered that it cannot serve requests now. A resource that is
// forbidden or missing, and content that cannot be decoded, are the reflector's own trouble.
func isOutage(err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil, isApplyError(err), isTooLarge(err):
		return false
	case isDecodingError(err):
		return isConnectionLost(err)
	case errors.As(err, &status):
		return status.Status().Code >= 500 || apierrors.IsTooManyRequests(err) ||
			apierrors.IsUnauthorized(err) // the credentials are those of all members
	}
	for _, sentinel := range []error{ErrWatchSilent, ErrListSilent, errUnreachable, io.EOF,
		io.ErrUnexpectedEOF} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	_, isNetwork := errors.AsType[net.Error](err) // also any error of a request in package net/http
	return isNetwork || isConnectionLost(err)
}

// isConnectionLost recognizes errors that HTTP/2 reports within an answer. Some have no type.
func isConnectionLost(err error) bool {
	return utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err) ||
		strings.Contains(err.Error(), "stream error: stream ID")
}

// isRefusal reports that the server does not understand a streaming list, and never will: an old
// server, or one that implements no more than LIST and WATCH.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err)
}

// bounded returns err, or a copy of bounded size: see shorterror.Of. An ApplyError stays one.
func bounded(err error) error {
	applyErr, ok := errors.AsType[*ApplyError](err)
	if !ok || shorterror.Fits(err) {
		return shorterror.Of(err)
	}
	return &ApplyError{
		Verb: applyErr.Verb, Object: printable.Short(applyErr.Object),
		Err: shorterror.Of(applyErr.Err),
	}
}
