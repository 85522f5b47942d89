// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/measure"
)

const (
	mergePatch = "application/merge-patch+json"
	podsPath   = "/api/v1/namespaces/default/pods"
)

// mustSend fails the test if the server refuses the request.
func mustSend(t *testing.T, s *apitest.Server, method, path, contentType, body string) string {
	t.Helper()
	got := send(t, s, method, path, contentType, body)
	require.Less(t, got.code, 300, "%.200s", got.body)
	return got.body
}

// Writes and lists cost linear time in the number of labels, annotations, owner references
// and fields of an object.
func TestGrowth_Width(t *testing.T) {
	entries := func(n int, entry string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(entry, i, i))
		}
		return strings.Join(all, ",")
	}
	for name, body := range map[string]func(n int) string{
		"labels": func(n int) string {
			return `"metadata":{"name":"a","labels":{` + entries(n, `"l%d":"v%d"`) + `}}`
		},
		"annotations": func(n int) string {
			return `"metadata":{"name":"a","annotations":{` + entries(n, `"a%d":"%d"`) + `}}`
		},
		"owner references": func(n int) string {
			const owner = `{"apiVersion":"v1","kind":"Pod","name":"o%d","uid":"u%d"}`
			return `"metadata":{"name":"a","ownerReferences":[` + entries(n, owner) + `]}`
		},
		"finalizers": func(n int) string {
			return `"metadata":{"name":"a","finalizers":[` + entries(
				n, `"example.com/%d-%d"`,
			) + `]}`
		},
		"fields": func(n int) string {
			return `"metadata":{"name":"a"},` + entries(n, `"f%d":{"v":%d}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			measure.Growth(t, 1000, func(n int) {
				s := start(t, apitest.Options{})
				object := "{" + body(n) + "}"
				mustSend(t, s, "POST", podsPath, "application/json", object)
				mustSend(t, s, "PATCH", podsPath+"/a", mergePatch, object)
				selected := podsPath + "?labelSelector=l1=v1,l2!=v3&fieldSelector=metadata.name=a"
				mustSend(t, s, "GET", selected, "", "")
				mustSend(t, s, "PUT", podsPath+"/a", "application/json", object)
			})
		})
	}
}
