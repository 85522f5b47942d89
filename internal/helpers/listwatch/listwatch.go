// SPDX-License-Identifier: Apache-2.0

// Package listwatch recognizes what means the same to a reflector and to a decorator of its
// ListerWatcher: a question to the server, a request that was not sent, pages that go round in a
// circle, and a watch that has no server or was not requested.
//
// Read this file; then go test ./internal/helpers/listwatch. Goroutines: none. Locking: none.
package listwatch

import (
	"errors"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Question returns the options of a LIST that asks only for the newest resourceVersion.
func Question() metav1.ListOptions { return metav1.ListOptions{Limit: 1} }

// ErrNotSent is matched by the errors of a decorator that has sent no request, because it knows
// that the server would refuse it.
var ErrNotSent = errors.New("no request was sent")

// IsQuestion reports whether options are those of a Question, or of a list of the newest state in
// pages of one object.
func IsQuestion(options metav1.ListOptions) bool {
	return options.Limit == 1 && options.ResourceVersion == "" && options.Continue == ""
}

// ContinueTokens recognizes that the pages of a list go round in a circle, with Brent's algorithm:
// it remembers the 1st, the 2nd, the 4th, the 8th token, and so on, and compares each token with
// the last one remembered. It is not safe for concurrent use.
type ContinueTokens struct {
	count      int
	remembered string
}

// Repeat takes the token of the next page, "" after the last one. It reports whether it was taken
// before; a circle is found within three turns.
func (t *ContinueTokens) Repeat(token string) bool {
	switch token {
	case "":
		return false
	case t.remembered:
		return true
	}
	t.count++
	if t.count&(t.count-1) == 0 {
		t.remembered = token
	}
	return false
}

// IsUnanswered reports whether no server has answered the request for w: package rest could not
// reach it, or a decorator has opened w without a request, which the method IsUnanswered says.
func IsUnanswered(w watch.Interface) bool {
	u, ok := w.(interface{ IsUnanswered() bool })
	return ok && u.IsUnanswered() || IsUnreachable(w)
}

// IsUnreachable reports whether package rest made w itself because it could not reach the server.
// Such a watch has ended already.
func IsUnreachable(w watch.Interface) bool {
	return reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch())
}
