// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/tools/answers"
)

// Odd lists that a client of client-go reads, typed or dynamic, and that are an error here.
func TestDifference_OddLists(t *testing.T) {
	for name, test := range map[string]struct {
		body           string
		typed, dynamic bool // whether client-go's clients read it
		err            string
	}{
		"items twice": {
			`{"kind":"PodList","apiVersion":"v1","items":[{}],"items":[{}]}`, true, true,
			`field "items" is repeated`,
		},
		"wrong metadata": {
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":5},"items":[]}`,
			false, true, "cannot unmarshal number",
		},
		"no kind": {`{"items":[]}`, true, false, `expected a list of kind "PodList" of "v1"`},
		"kind in another case": {
			`{"Kind":"PodList","APIVersion":"v1","items":[]}`, true, false,
			`expected a list of kind "PodList" of "v1"`,
		},
		"no items": {`{"kind":"PodList","apiVersion":"v1"}`, true, true, "no field"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			server := &answers.Server{Answer: answers.With(http.StatusOK, []byte(test.body))}
			client := answers.Client(t, server)
			err := client.Get().Resource("pods").Do(ctx).Into(&v1.PodList{})
			require.Equal(t, test.typed, err == nil, "typed: %v", err)
			anything, err := dynamic.NewForConfig(&rest.Config{Host: "http://s", Transport: server})
			require.NoError(t, err)
			_, err = anything.Resource(v1.SchemeGroupVersion.WithResource("pods")).
				List(ctx, metav1.ListOptions{})
			require.Equal(t, test.dynamic, err == nil, "dynamic: %v", err)

			_, err = listed(NewListWatch(client, "pods", "", newPod, Options{}))
			require.ErrorContains(t, err, test.err)
		})
	}
}

// Odd events. client-go reads apiVersion and kind in any case; and it decodes the object of an
// ERROR event like any other, so that it is a Pod, or cannot be decoded.
func TestDifference_OddEvents(t *testing.T) {
	read := func(body string) (theirs, ours watch.Event) {
		all := receiveClientGo(t, answers.JSON, strings.NewReader(body))
		require.Len(t, all, 1)
		got := receive(strings.NewReader(body), newPod, Options{})
		require.Len(t, got, 1)
		return all[0], got[0]
	}
	isDecodingError := func(e watch.Event) bool {
		return e.Type == watch.Error &&
			apierrors.HasStatusCause(apierrors.FromObject(e.Object), "ClientWatchDecoding")
	}

	theirs, ours := read(`{"type":"ADDED","object":{"Kind":"Pod","APIVersion":"v1"}}`)
	require.Equal(t, watch.Added, theirs.Type)
	require.True(t, isDecodingError(ours))

	theirs, ours = read(`{"type":"ERROR","object":{"kind":"Pod","apiVersion":"v1"}}`)
	require.IsType(t, &v1.Pod{}, theirs.Object)
	require.Equal(t, watch.Error, ours.Type)
	require.IsType(t, &unstructured.Unstructured{}, ours.Object)

	for _, object := range []string{
		`{"kind":"Foo","apiVersion":"x/v1"}`, `{}`, `null`, `{"status":"Failure","code":410}`,
	} {
		theirs, ours = read(`{"type":"ERROR","object":` + object + `}`)
		require.True(t, isDecodingError(theirs), object)
		require.Equal(t, watch.Error, ours.Type)
		require.IsType(t, &unstructured.Unstructured{}, ours.Object, object)
	}
}
