// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// One question of an open page, in a program with 20 informers and 100,000 objects that rests.
func BenchmarkPage(b *testing.B) {
	p := newBenchProgram(b)
	defer p.stop()
	for n := range 100 {
		p.change(n)
	}
	p.done.Wait()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodGet,
			"/debug/informers?format=json&limit=20&brief=1", http.NoBody)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		Handler().ServeHTTP(w, r)
		require.Equal(b, http.StatusOK, w.Code)
		b.SetBytes(int64(w.Body.Len()))
	}
}
