// SPDX-License-Identifier: Apache-2.0

// Package listwatch recognizes two things that mean the same to a reflector and to a decorator of
// its ListerWatcher: a question to the server, and a watch that has no server.
//
// Read this file; then go test ./internal/helpers/listwatch. Goroutines: none. Locking: none.
package listwatch

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Question returns the options of a LIST that asks only for the newest resourceVersion.
func Question() metav1.ListOptions { return metav1.ListOptions{Limit: 1} }

// IsQuestion reports whether options are those of a Question, or of a list of the newest state in
// pages of one object.
func IsQuestion(options metav1.ListOptions) bool {
	return options.Limit == 1 && options.ResourceVersion == "" && options.Continue == ""
}

// IsUnreachable reports whether package rest made w itself because it could not reach the server.
// Such a watch has ended already.
func IsUnreachable(w watch.Interface) bool {
	return reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch())
}
