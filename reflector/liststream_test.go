// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/tools/answers"
	"example.com/informerstack/reflector/wire"
)

// The reflector streams each page of a LIST, and transforms its items before it requests the next.
func TestStreamLister(t *testing.T) {
	var order []string
	w := &answers.Server{}
	w.Answer = func(req *http.Request) (int, io.Reader) {
		order = append(order, "request")
		list := podList("5", "", "b@2")
		if req.URL.Query().Get("continue") == "" {
			list = podList("5", "next", "a@1")
		}
		list.Kind, list.APIVersion = "PodList", "v1"
		body, err := json.Marshal(list)
		require.NoError(t, err)
		return http.StatusOK, bytes.NewReader(body)
	}
	lw := wire.NewListWatch(answers.Client(t, w), "pods", "", newPod, wire.Options{})
	r := New(lw, &v1.Pod{}, nil, Options{Transform: func(obj any) (any, error) {
		order = append(order, "transform "+obj.(*v1.Pod).Name)
		return obj, nil
	}})
	got, err := r.fetch(context.Background(), "0", 500)
	require.NoError(t, err)
	require.Len(t, got.items, 2)
	require.True(t, got.paged)
	require.Equal(t, []string{"request", "transform a", "request", "transform b"}, order)
	require.Equal(t, "continue=next&limit=500", w.Requests[1].URL.RawQuery)
}

const slowStep = 2 * time.Millisecond // for each object

// A program that needs eight seconds for a collection keeps up with a server that ends each request
// after five: by LIST, by a streaming list, and for the changes of a watch.
func TestSlowProgram_NeedsNoSecondRequest(t *testing.T) {
	const count = 4000
	list := podList("5000", "")
	list.Kind, list.APIVersion = "PodList", "v1"
	var stream, changes strings.Builder
	for i := range count {
		list.Items = append(list.Items, *pod(fmt.Sprintf("p%d@%d", i, i+1)))
		fmt.Fprintf(&stream, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",`+
			`"metadata":{"namespace":"ns","name":"p%d","resourceVersion":"%d"}}}`, i, i+1)
		fmt.Fprintf(&changes, `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",`+
			`"metadata":{"namespace":"ns","name":"p%d","resourceVersion":"%d"}}}`, i, i+5001)
	}
	fmt.Fprintf(&stream, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1",`+
		`"metadata":{"resourceVersion":"5000","annotations":{%q:"true"}}}}`,
		metav1.InitialEventsAnnotationKey)
	whole, err := json.Marshal(list)
	require.NoError(t, err)

	for _, streaming := range []bool{false, true} {
		t.Run(fmt.Sprint("streaming=", streaming), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				followed := false
				server := &answers.Server{Answer: func(req *http.Request) (int, io.Reader) {
					var body []byte
					switch query := req.URL.Query(); {
					case query.Get("sendInitialEvents") == "true":
						body = []byte(stream.String())
					case query.Get("watch") == "":
						body = whole
					case !followed:
						followed = true
						body = []byte(changes.String())
					default: // everything was applied
						cancel()
						return http.StatusGone, strings.NewReader("")
					}
					open, end := io.Pipe() // the connection stays open
					context.AfterFunc(ctx, func() { _ = end.Close() })
					at := time.Now().Add(5 * time.Second)
					if query := req.URL.Query(); query.Get("watch") == "" {
						return http.StatusOK, answers.Until(at, bytes.NewReader(body))
					}
					time.AfterFunc(5*time.Second, func() { _ = end.Close() })
					all := io.MultiReader(bytes.NewReader(body), open)
					return http.StatusOK, answers.Until(at, all)
				}}
				client := answers.Client(t, server)
				lw := wire.NewListWatch(client, "pods", "", newPod, wire.Options{})
				store := &mapStore{err: func() error { time.Sleep(slowStep); return nil }}
				New(lw, newPod(), store, Options{
					UseWatchList: &streaming,
					Transform: func(obj any) (any, error) {
						time.Sleep(slowStep)
						return obj, nil
					},
				}).Run(ctx)
				require.Equal(t, fmt.Sprint("replace by ", count), store.diary[0])
				require.Len(t, store.diary, 1+count)
			})
		})
	}
}
