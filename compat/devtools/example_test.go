// SPDX-License-Identifier: Apache-2.0

package devtools_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"example.com/informerstack/compat/devtools"
)

// A program serves the page beside its metrics.
func ExampleHandler() {
	http.Handle("/debug/informers", devtools.Handler())

	answer := httptest.NewRecorder()
	request := httptest.NewRequest("GET", "http://localhost/debug/informers", nil)
	http.DefaultServeMux.ServeHTTP(answer, request)
	fmt.Println(answer.Code)
	// Output: 200
}
