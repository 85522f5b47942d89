// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/client"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
)

// Website is a custom resource.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Host              string `json:"host,omitempty"`
	Status            struct {
		Live bool `json:"live,omitempty"`
	} `json:"status,omitzero"`
}

func (w *Website) DeepCopyObject() runtime.Object {
	copied := *w
	w.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

var websites = schema.GroupVersionResource{
	Group: "example.com", Version: "v1", Resource: "websites"}

// definition serves websites of a kind.
func definition(kind string) apitest.Options {
	return apitest.Options{Resources: []apitest.Resource{{Group: "example.com", Version: "v1",
		Kind: kind, Plural: "websites", Namespaced: true, Status: true}}}
}

func website(name, host string) *Website {
	return &Website{ObjectMeta: metav1.ObjectMeta{Name: name}, Host: host}
}

// A client of a custom resource, and an informer that reads with it.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server := apitest.NewServer(definition("Website"))
	if err := server.StartPipe(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	config := &rest.Config{Host: server.URL, Transport: server.Transport()}

	sites, err := client.New[*Website](config, websites, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	created, err := sites.Namespace("default").Create(
		ctx, website("shop", "shop.example.com"), metav1.CreateOptions{})
	fmt.Println("created", created.Name, err)

	cached := informer.New[*Website](sites.REST(), "websites", informer.Options{})
	go cached.Run(ctx)
	if err := informer.WaitForSync(ctx, cached); err != nil {
		fmt.Println(err)
	}
	found, err := cached.Lister().ByNamespace("default").Get("shop")
	fmt.Println(found.Host, err)
	// Output:
	// created shop <nil>
	// shop.example.com <nil>
}

func TestClient_EachMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, definition("Website"))
		all, err := client.New[*Website](server.Config(), websites, client.Options{})
		require.NoError(t, err)
		sites, ctx := all.Namespace("default"), t.Context()

		given := website("shop", "old")
		created, err := sites.Create(ctx, given, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, website("shop", "old"), given, "the argument is not changed")
		_, err = sites.Create(ctx, website("shop", "other"), metav1.CreateOptions{})
		assert.True(t, apierrors.IsAlreadyExists(err), err)

		changes, err := all.Namespace("").Watch(ctx,
			metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		require.NoError(t, err)
		defer changes.Stop()

		changed := created.DeepCopyObject().(*Website)
		changed.Host, changed.Status.Live = "new", true
		updated, err := sites.Update(ctx, changed, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, "new", updated.Host)
		assert.False(t, updated.Status.Live, "status is a subresource")
		_, err = sites.Update(ctx, changed, metav1.UpdateOptions{})
		assert.True(t, apierrors.IsConflict(err), err)

		updated.Host, updated.Status.Live = "not this", true
		reported, err := sites.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.True(t, reported.Status.Live)
		assert.Equal(t, "new", reported.Host)

		_, err = sites.Patch(ctx, "shop", types.MergePatchType,
			[]byte(`{"status":{"live":false}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		read, err := sites.Get(ctx, "shop", metav1.GetOptions{})
		require.NoError(t, err)
		assert.False(t, read.Status.Live)

		_, err = sites.Create(ctx, website("blog", "b"), metav1.CreateOptions{})
		require.NoError(t, err)
		page, err := sites.List(ctx, metav1.ListOptions{Limit: 1})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		assert.Equal(t, "b", page.Items[0].Host)
		assert.NotEmpty(t, page.Continue)
		rest, err := sites.List(ctx, metav1.ListOptions{Continue: page.Continue})
		require.NoError(t, err)
		require.Len(t, rest.Items, 1)
		assert.Equal(t, "shop", rest.Items[0].Name)

		require.NoError(t, sites.Delete(ctx, "shop", metav1.DeleteOptions{}))
		_, err = sites.Get(ctx, "shop", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), err)
		assert.EqualError(t, err, `websites.example.com "shop" not found`)

		var seen []watch.EventType
		for range 5 {
			event := <-changes.ResultChan()
			seen = append(seen, event.Type)
			assert.IsType(t, &Website{}, event.Object)
		}
		assert.Equal(t, []watch.EventType{watch.Modified, watch.Modified, watch.Modified,
			watch.Added, watch.Deleted}, seen)
	})
}

// A delete takes effect only if its precondition holds.
func TestClient_DeleteOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, apitest.Options{})
		maps, err := client.New[*corev1.ConfigMap](server.Config(),
			corev1.SchemeGroupVersion.WithResource("configmaps"), client.Options{})
		require.NoError(t, err)
		server.CreateMap("a")
		err = maps.Namespace("default").Delete(t.Context(), "a", metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions("another")})
		assert.True(t, apierrors.IsConflict(err), err)
		read, err := maps.Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err, "a built-in kind")
		require.NoError(t, maps.Namespace("default").Delete(t.Context(), "a", metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(read.UID))}))
	})
}

// The Go type may have another name than the kind.
func TestClient_Kind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, definition("Site"))
		sites, err := client.New[*Website](server.Config(), websites, client.Options{Kind: "Site"})
		require.NoError(t, err)
		_, err = sites.Namespace("default").Create(t.Context(), website("shop", ""),
			metav1.CreateOptions{})
		require.NoError(t, err)
	})
	_, err := client.New[*Website](&rest.Config{Host: "::"}, websites, client.Options{})
	assert.ErrorContains(t, err, "make client of websites.example.com: ")
}

// value is an object that is no pointer.
type value struct{ *Website }

func TestClient_NeedsAPointer(t *testing.T) {
	_, err := client.New[value](&rest.Config{}, websites, client.Options{})
	assert.EqualError(t, err,
		"make client of websites.example.com: client_test.value is not a pointer to a struct")
}

// Without a version, a resource or a kind there is no path to ask for, or nothing to decode.
func TestClient_NeedsNames(t *testing.T) {
	for _, resource := range []schema.GroupVersionResource{
		{}, {Group: "example.com", Resource: "websites"}, {Group: "example.com", Version: "v1"},
	} {
		_, err := client.New[*Website](&rest.Config{}, resource, client.Options{})
		assert.ErrorContains(t, err, "version, resource or kind is empty", resource)
	}
	_, err := client.New[*struct{ Website }](&rest.Config{}, websites, client.Options{})
	assert.ErrorContains(t, err, "version, resource or kind is empty: example.com/v1, Kind=")
}

// Several goroutines may write one object: it is not changed while it is encoded.
func TestClient_WritesShareAnObject(t *testing.T) {
	server := testserver.New(t, definition("Website"))
	sites, err := client.New[*Website](server.Config(), websites, client.Options{})
	require.NoError(t, err)
	shared := &Website{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			created, err := sites.Namespace("default").Create(
				t.Context(), shared, metav1.CreateOptions{})
			if assert.NoError(t, err) {
				assert.NotEmpty(t, created.Name)
			}
			_, err = sites.Namespace("default").Update(t.Context(), shared, metav1.UpdateOptions{})
			assert.ErrorContains(t, err, "name may not be empty")
		})
	}
	for range 1000 { // a reader
		assert.Empty(t, shared.Kind)
	}
	writers.Wait()
}

// TimeoutSeconds also bounds the wait for a server that does not answer. Requests name the program.
func TestClient_ListHasATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agent string
		config := &rest.Config{Host: "http://server.invalid",
			Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
				agent = request.UserAgent()
				<-request.Context().Done()
				return nil, request.Context().Err()
			})}
		sites, err := client.New[*Website](config, websites, client.Options{})
		require.NoError(t, err)
		began := time.Now()
		_, err = sites.Namespace("").List(t.Context(),
			metav1.ListOptions{TimeoutSeconds: new(int64(5))})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 5*time.Second, time.Since(began))
		assert.Equal(t, rest.DefaultKubernetesUserAgent(), agent)
	})
}

// An answer of something else, such as a proxy's, is no empty list. Names of fields have one case,
// as in the answers to the other methods.
func TestClient_ListIsAList(t *testing.T) {
	const list = `{"kind":"WebsiteList","apiVersion":"example.com/v1"`
	for answer, want := range map[string]string{
		`{}`: `got a "" of "", want a list of "example.com/v1"`,
		`{"kind":"WebsiteList","apiVersion":"example.com/v2","items":[]}`: `of "example.com/v2"`,
		list + `}`:                  `"items" is missing or null`,
		list + `,"items":null}`:     `"items" is missing or null`,
		list + `,"Items":[]}`:       `"items" is missing or null`,
		list + `,"items":[null]}`:   `item 0 is null`,
		list + `,"items":["shop"]}`: "cannot unmarshal string",
		list + `,"items":[{},{"kind":"Site","apiVersion":"example.com/v1"}]}`: `item 1 is a ` +
			`example.com/v1, Kind=Site, want example.com/v1, Kind=Website`,
		`<html>`:              "invalid character '<'",
		list + `,"items":[]}`: "",
		list + `,"items":[{"kind":"Website","apiVersion":"example.com/v1",` +
			`"host":"h","Host":"H"}]}`: "",
	} {
		config := &rest.Config{Host: "http://server.invalid", Transport: answers(answer)}
		sites, err := client.New[*Website](config, websites, client.Options{})
		require.NoError(t, err)
		got, err := sites.Namespace("").List(t.Context(), metav1.ListOptions{})
		if want != "" {
			assert.ErrorContains(t, err, "decode list of websites: ")
			assert.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		for _, site := range got.Items {
			assert.Equal(t, "h", site.Host)
		}
	}
}

// An answer of something else is no object without a name either.
func TestClient_AnObjectIsAnObject(t *testing.T) {
	for answer, want := range map[string]string{
		`{}`:   "decode Website: the answer has no name",
		`null`: "decode Website: the answer has no name",
		`{"kind":"Status","apiVersion":"v1","status":"Success"}`:                   "has no name",
		`{"kind":"Site","apiVersion":"example.com/v1","metadata":{"name":"shop"}}`: "Site",
		``: "0-length response",
		`{"kind":"Website","apiVersion":"example.com/v1","metadata":{"name":"shop"}}`: "",
	} {
		config := &rest.Config{Host: "http://server.invalid", Transport: answers(answer)}
		sites, err := client.New[*Website](config, websites, client.Options{})
		require.NoError(t, err)
		got, err := sites.Namespace("default").Get(t.Context(), "shop", metav1.GetOptions{})
		if want != "" {
			assert.ErrorContains(t, err, want, answer)
			assert.Nil(t, got)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, "shop", got.Name)
	}
}

// roundTripper is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	return r(request)
}

// answers returns a transport that answers every request with body.
func answers(body string) roundTripper {
	return func(request *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(body)),
			Header: http.Header{"Content-Type": {"application/json"}}, Request: request}, nil
	}
}
