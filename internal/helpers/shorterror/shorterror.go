// SPDX-License-Identifier: Apache-2.0

// Package shorterror makes copies of errors with a bounded size. A server may send an error of any
// length, and a program may keep the last one for as long as it runs.
//
//	server -> reflector -> [shorterror] -> Status, log
//
// Read shorterror.go; then go test ./internal/helpers/shorterror. No goroutines, no locks.
package shorterror

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/helpers/printable"
)

const (
	maxTextBytes   = printable.MaxRunes
	maxStatusBytes = 4 * maxTextBytes // the causes in the details can be many
	maxCauses      = 16
)

// Of returns err if it Fits, otherwise a copy with the beginning of its text. errors.Is and
// errors.As match the copy with each error that err wraps and that Fits, and with a short copy of
// an API status. Of(nil) is nil.
func Of(err error) error {
	if err == nil || Fits(err) {
		return err
	}
	return &shortError{text: printable.Short(err.Error()), causes: causes(err, nil)}
}

// Fits reports whether err is short: its text, and the API status that it wraps.
func Fits(err error) bool {
	if len(err.Error()) > maxTextBytes {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	s := status.Status()
	return s.Size() <= maxStatusBytes
}

// shortError is the copy of an error that did not fit.
type shortError struct {
	text   string
	causes []error
}

func (e *shortError) Error() string   { return e.text }
func (e *shortError) Unwrap() []error { return e.causes }

// causes appends to found what remains of err in a copy.
func causes(err error, found []error) []error {
	if err == nil || len(found) == maxCauses {
		return found
	}
	if Fits(err) {
		return append(found, err)
	}
	switch err := err.(type) {
	case apierrors.APIStatus:
		found = append(found, shortStatus(err.Status()))
	case interface{ Unwrap() error }:
		found = causes(err.Unwrap(), found)
	case interface{ Unwrap() []error }:
		for _, cause := range err.Unwrap() {
			found = causes(cause, found)
		}
	}
	return found
}

// shortStatus returns what callers ask of an API error: its code and reason, the delay, and the
// first causes' types.
func shortStatus(status metav1.Status) *apierrors.StatusError {
	short := metav1.Status{
		Status: printable.Short(status.Status), Code: status.Code,
		Reason:  metav1.StatusReason(printable.Short(string(status.Reason))),
		Message: printable.Short(status.Message),
	}
	if details := status.Details; details != nil {
		short.Details = &metav1.StatusDetails{
			Name:  printable.Short(details.Name),
			Group: printable.Short(details.Group), Kind: printable.Short(details.Kind),
			RetryAfterSeconds: details.RetryAfterSeconds,
		}
		for _, cause := range details.Causes[:min(len(details.Causes), 4)] {
			short.Details.Causes = append(short.Details.Causes, metav1.StatusCause{
				Type:    metav1.CauseType(printable.Short(string(cause.Type))),
				Message: printable.Short(cause.Message), Field: printable.Short(cause.Field),
			})
		}
	}
	return &apierrors.StatusError{ErrStatus: short}
}
