// SPDX-License-Identifier: Apache-2.0

package linktoken

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only the token leads to the page, which gets the path below it.
func TestHandler_WantsTheToken(t *testing.T) {
	token := New()
	require.NotEqual(t, token, New())
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "page "+r.URL.Path)
	})
	h := Handler(token, page, http.HandlerFunc(Refuse))
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/" + token + "/":        {http.StatusOK, "page /"},
		"/" + token + "/lab/x":   {http.StatusOK, "page /lab/x"},
		"/" + token:              {http.StatusFound, "/" + token + "/"},
		"/":                      {http.StatusUnauthorized, "the token is missing or wrong"},
		"/lab/x":                 {http.StatusUnauthorized, "the token is missing or wrong"},
		"/" + token[1:] + "/":    {http.StatusUnauthorized, "the token is missing or wrong"},
		"//" + token + "/lab/x":  {http.StatusUnauthorized, "the token is missing or wrong"},
		"/lab/" + token + "/lab": {http.StatusUnauthorized, "the token is missing or wrong"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost"+path, http.NoBody))
		require.Equal(t, want.code, w.Code, path)
		require.Contains(t, w.Body.String(), want.text, path)
	}
}
