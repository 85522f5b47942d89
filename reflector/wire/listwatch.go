// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Getter starts a GET request. rest.Interface is one.
//
// Source: tools/cache/listwatch.go Getter
type Getter interface {
	Get() *rest.Request
}

// versioned is a client that requests one group and version. rest.Interface is one.
type versioned interface {
	APIVersion() schema.GroupVersion
}

// ListWatch lists and watches a collection. It is a reflector.ListerWatcher, and a
// reflector.StreamLister, which hands over a list item by item: a list's objects before a transform
// are never all in memory at one time.
type ListWatch struct {
	client              Getter
	resource, namespace string
	decoder             decoder
	options             Options
	listAs, watchAs     string // media types
}

// NewListWatch returns the ListWatch of resource in namespace, or in all for "".
//
// It asks for protobuf if newObject's type has generated code for it and does not contain itself,
// and otherwise for JSON. For *metav1.PartialObjectMetadata the server sends metadata alone. An
// error of the server has the requested format too, and client decodes it.
func NewListWatch(
	client Getter, resource, namespace string, newObject NewObject, options Options,
) *ListWatch {
	if c, ok := client.(versioned); ok && options.Kind.Version == "" {
		options.Kind.Group, options.Kind.Version = c.APIVersion().Group, c.APIVersion().Version
	}
	options.ReadAhead = cmp.Or(options.ReadAhead, budgetOf(client))
	lw := &ListWatch{
		client: client, resource: resource, namespace: namespace,
		decoder: newDecoder(newObject, options), options: options,
		listAs: mediaJSON, watchAs: mediaJSON,
	}
	if lw.decoder.ReadsProtobuf {
		lw.listAs, lw.watchAs = mediaProtobuf+","+mediaJSON, mediaProtobuf+","+mediaJSON
	}
	if lw.decoder.metadata {
		const list, object = ";as=PartialObjectMetadataList", ";as=PartialObjectMetadata"
		const of = ";g=meta.k8s.io;v=v1"
		lw.listAs = mediaProtobuf + list + of + "," + mediaJSON + list + of + "," + mediaJSON
		lw.watchAs = mediaProtobuf + object + of + "," + mediaJSON + object + of + "," + mediaJSON
	}
	return lw
}

const (
	mediaJSON     = runtime.ContentTypeJSON
	mediaProtobuf = runtime.ContentTypeProtobuf
)

func (lw *ListWatch) request(options metav1.ListOptions) *rest.Request {
	if lw.options.Modify != nil {
		lw.options.Modify(&options)
	}
	return boundSleeps(lw.client.Get()).Namespace(lw.namespace).Resource(lw.resource).
		VersionedParams(&options, metav1.ParameterCodec)
}

// failed returns err with the path of the collection, which contains its namespace, unless err
// contains the URL.
func (lw *ListWatch) failed(verb string, err error) error {
	var sent *url.Error
	if err == nil || errors.As(err, &sent) {
		return err
	}
	return fmt.Errorf("%s %s: %w", verb, lw.path(), err)
}

// path is such as /api/v1/namespaces/ns/pods.
func (lw *ListWatch) path() string {
	return lw.client.Get().Namespace(lw.namespace).Resource(lw.resource).URL().Path
}

// ListWithContext returns the whole list, which the client requests in its own format and decodes.
// A reflector calls ListStream.
func (lw *ListWatch) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	request := lw.request(options)
	if lw.decoder.metadata {
		request.SetHeader("Accept", lw.listAs)
	}
	list, err := request.Do(ctx).Get()
	return list, lw.failed("list", err)
}

// ListStream implements reflector.StreamLister. An error that the server sends contains the
// *errors.StatusError that ListWithContext would return. An error of each is returned as it is.
func (lw *ListWatch) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	body, err := send(ctx, lw.request(options).SetHeader("Accept", lw.listAs), isListLost)
	if err != nil {
		return metav1.ListMeta{}, lw.failed("list", err)
	}
	defer body.Close()
	var refused error
	m, err := readList(body, lw.decoder, lw.options.Limits, func(obj runtime.Object) error {
		refused = each(obj)
		return refused
	})
	if refused != nil {
		return m, refused
	}
	return m, lw.failed("list", err)
}

// WatchWithContext starts a watch. Like client-go's, its first request is not delayed by the
// client's rate limit. If the connection is lost before the answer, the request is repeated; after
// ten repetitions the result is a watch that has ended already.
func (lw *ListWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	options.Watch = true
	request := lw.request(options).SetHeader("Accept", lw.watchAs).
		Throttle(limitRepetitions(lw.client))
	body, err := send(ctx, request, isWatchLost)
	switch {
	case ctx.Err() == nil && isWatchLost(err):
		return watch.NewEmptyWatch(), nil
	case err != nil:
		return nil, lw.failed("watch", err)
	}
	return readWatch(body, lw.decoder, lw.options, " "+lw.path()), nil
}

// List is ListWithContext for callers without a context.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext for callers without a context.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}
