// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/compat/decoding"
)

// The URL of a collection has its resource, namespace and selectors. Nothing else of it is kept.
func TestSelection_OfAURL(t *testing.T) {
	for text, want := range map[string]string{
		"/api/v1/pods":                            "pods",
		"/api/v1/namespaces":                      "namespaces",
		"/api/v1/namespaces/team/pods":            "pods namespace=team",
		"/api/v1/namespaces/api/pods":             "pods namespace=api",
		"/apis/apps/v1/deployments":               "deployments.apps",
		"/apis/apps/v1/namespaces/team/a":         "a.apps namespace=team",
		"/apis/x.y/apis/namespaces/api/api":       "api.x.y namespace=api",
		"/clusters/api/v1/c/apis/apps/v1/a":       "a.apps",
		"https://u:p@h/k/api/v1/pods?token=t":     "pods",
		"/api/v1/pods?labelSelector=a%3Db%2Cc":    "pods labels=a=b,c",
		"/api/v1/pods?fieldSelector=x!%3Dy":       "pods fields=x!=y",
		"/api/v1/pods?a=%zz&labelSelector=a":      "pods labels=a",
		"/api/v1/pods?labelSelector=" + long(100): "pods labels=" + long(100),

		"":                                   "",
		"/":                                  "",
		"/api":                               "",
		"/api/v1":                            "",
		"/apis/apps/v1":                      "",
		"/openapi/v3":                        "",
		"/api/v1/nodes/a":                    "",
		"/api/v1/namespaces/team":            "",
		"/api/v1/namespaces/team/pods/a":     "",
		"/apis/apps/v1/deployments/a":        "",
		"/api/v1/watch/pods":                 "",
		"/api/v1/namespaces//pods":           "",
		"/api/v1/pods?limit=" + long(16<<10): "",
	} {
		at, err := url.Parse(text)
		require.NoError(t, err)
		key, ok := selectedBy(at)
		assert.Equal(t, want != "", ok, text)
		if ok {
			assert.Equal(t, want, key.String(), text)
		}
	}
}

func long(n int) string { return strings.Repeat("a", n) }

// A selection does not keep the URL in memory.
func TestSelection_SharesNoMemoryWithTheURL(t *testing.T) {
	const text = "https://u:password@h/apis/apps/v1/namespaces/team/pods" +
		"?labelSelector=a&token=secret&fieldSelector=b"
	raw := strings.Clone(text)
	at, err := url.Parse(raw)
	require.NoError(t, err)
	key, ok := selectedBy(at)
	require.True(t, ok)
	start := uintptr(unsafe.Pointer(unsafe.StringData(raw)))
	for _, part := range []string{key.Resource.Group, key.Resource.Version, key.Resource.Resource,
		key.Namespace, key.LabelSelector, key.FieldSelector} {
		at := uintptr(unsafe.Pointer(unsafe.StringData(part)))
		assert.NotEmpty(t, part)
		assert.False(t, start <= at && at < start+uintptr(len(raw)), part)
	}
}

// requests is a ListerWatcher with a function that sends a request to each of the addresses.
type requests struct {
	ListerWatcherWithContext
	addresses []string
	dropped   bool // the function does not pass on its context
}

func (r *requests) ListWithContext(
	ctx context.Context, _ metav1.ListOptions,
) (runtime.Object, error) {
	if r.dropped {
		ctx = context.Background()
	}
	var sent sync.WaitGroup
	for _, address := range r.addresses {
		sent.Go(func() {
			client := runtime.NewClientNegotiator(scheme.Codecs, corev1.SchemeGroupVersion)
			decoding.Negotiator(ctx, client, func() *url.URL {
				at, _ := url.Parse(address)
				return at
			})
		})
	}
	sent.Wait()
	return &corev1.PodList{}, nil
}

// An informer knows what its last LIST or WATCH has selected, unless that had several selections.
func TestSelection_IsOfTheLastRequest(t *testing.T) {
	const pods, team = "/api/v1/pods", "/api/v1/namespaces/team/pods"
	for name, test := range map[string]struct {
		lists   [][]string
		dropped bool
		want    string
	}{
		"no request":        {nil, false, ""},
		"one":               {[][]string{{pods}}, false, "pods"},
		"pages":             {[][]string{{pods + "?limit=1"}, {pods}}, false, "pods"},
		"retries":           {[][]string{{team, team}}, false, "pods namespace=team"},
		"a change":          {[][]string{{pods}, {team}}, false, "pods namespace=team"},
		"and an object":     {[][]string{{pods, team + "/a"}, {"/version"}}, false, "pods"},
		"two namespaces":    {[][]string{{team, pods}}, false, ""},
		"two, and then one": {[][]string{{pods}, {pods, team}, {pods}}, false, ""},
		"no context":        {[][]string{{pods}}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := &selection{}, &requests{dropped: test.dropped}
			lw := sourceOf(r, "reflector", s)
			for _, r.addresses = range test.lists {
				_, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
			}
			key, known := s.known()
			assert.Equal(t, test.want != "", known)
			if known {
				assert.Equal(t, test.want, key.String())
			}
		})
	}
}

// Nothing looks at the requests of a program without package devtools.
func TestSelection_WithoutDevtools(t *testing.T) {
	s := newSelection()
	require.Nil(t, s)
	_, known := s.known()
	require.False(t, known)
	client := runtime.NewClientNegotiator(scheme.Codecs, corev1.SchemeGroupVersion)
	ctx := decodedListWatch{selected: s}.with(t.Context())
	require.Equal(t, client, decoding.Negotiator(ctx, client, func() *url.URL {
		t.Error("the URL was asked for")
		return nil
	}))
}
