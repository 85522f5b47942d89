// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/apitest"
)

// A version that its definition does not serve any more answers 404, its watches end, and its
// objects are there again when it is served. The objects of a definition that is deleted go first.
func TestDefinition_ServesAndUnserves(t *testing.T) {
	bubble(t, apitest.Options{}, func(t *testing.T, s *apitest.Server) {
		define := func(served string) *unstructured.Unstructured {
			return gadgets(t,
				`[{"name":"v1","served":`+served+`},{"name":"v2","served":true}]`)
		}
		get := func(query string) *http.Response {
			answer, err := s.Client().Get(s.URL + "/apis/example.org/v1/gadgets" + query)
			require.NoError(t, err)
			t.Cleanup(func() { _ = answer.Body.Close() })
			return answer
		}
		change := func(served string) {
			d, old := define(served), define(served)
			require.NoError(t, s.Get(old))
			d.SetUID(old.GetUID())
			d.SetResourceVersion(old.GetResourceVersion())
			require.NoError(t, s.Update(d))
		}
		events := func(watch *http.Response) (types []string) {
			lines := bufio.NewScanner(watch.Body)
			for lines.Scan() {
				kind, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), `{"type":"`), `"`)
				types = append(types, kind)
			}
			return types
		}
		require.NoError(t, s.Create(define("false")))
		assert.Equal(t, http.StatusNotFound, get("").StatusCode)
		change("true")
		require.NoError(t, s.Create(gadget(t, "v1", "")))
		watch := get("?watch=true")
		synctest.Wait() // the server sends the headers before the objects
		change("false")
		began := time.Now()
		assert.Equal(t, []string{"ADDED"}, events(watch))
		assert.Zero(t, time.Since(began), "the watch ends at once")
		assert.Equal(t, http.StatusNotFound, get("").StatusCode)
		objects, err := s.List("gadgets.example.org", "")
		require.NoError(t, err)
		require.Len(t, objects, 1)
		assert.Equal(t, "example.org/v2", objects[0].GetAPIVersion())
		change("true")
		assert.Equal(t, http.StatusOK, get("").StatusCode)

		watch = get("?watch=true")
		synctest.Wait()
		require.NoError(t, s.Delete(define("true")))
		assert.Equal(t, []string{"ADDED", "DELETED"}, events(watch))
		require.NoError(t, s.Create(define("true")))
		assert.Empty(t, events(get("?watch=true&timeoutSeconds=1")), "another kind with the name")
	})
}
