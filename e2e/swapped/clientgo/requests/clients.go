// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// clientFunc returns the functions of a reflector, and an object of its type.
type clientFunc func(url string) (lw *cache.ListWatch, example runtime.Object, err error)

// clients are the ways in which programs make requests.
var clients = map[string]clientFunc{
	"typed": func(url string) (*cache.ListWatch, runtime.Object, error) {
		return typed(config(url))
	},
	"protobuf": func(url string) (*cache.ListWatch, runtime.Object, error) {
		return typed(binary(url))
	},
	"wrapped":  wrapped,
	"filters":  filters,
	"dynamic":  untyped,
	"metadata": metadataOnly,
	"converts": func(url string) (*cache.ListWatch, runtime.Object, error) {
		return ofRest(config(url), converts{scheme.Codecs}, &corev1.ConfigMap{})
	},
	"ownjson": func(url string) (*cache.ListWatch, runtime.Object, error) {
		s := runtime.NewScheme()
		s.AddKnownTypeWithName(configMap, &settings{})
		s.AddKnownTypeWithName(configMap.GroupVersion().WithKind("ConfigMapList"), &settingsList{})
		metav1.AddToGroupVersion(s, configMap.GroupVersion())
		return ofRest(config(url), serializer.NewCodecFactory(s).WithoutConversion(), &settings{})
	},
}

var configMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")

func config(url string) *rest.Config {
	return &rest.Config{
		Host: url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	}
}

// binary returns a configuration for protobuf.
func binary(url string) *rest.Config {
	c := config(url)
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return c
}

func typed(c *rest.Config) (*cache.ListWatch, runtime.Object, error) {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, nil, err
	}
	maps := client.CoreV1().ConfigMaps("")
	return &cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: maps.Watch,
	}, &corev1.ConfigMap{}, nil
}

// wrapped has a round tripper of the program, which reads bodies in parts.
func wrapped(url string) (*cache.ListWatch, runtime.Object, error) {
	c := config(url)
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return inParts{rt} })
	return typed(c)
}

type inParts struct{ http.RoundTripper }

func (p inParts) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{iotest.HalfReader(answer.Body), answer.Body}
	}
	return answer, err
}

// filters drops and changes items of the lists.
func filters(url string) (*cache.ListWatch, runtime.Object, error) {
	lw, example, err := typed(binary(url))
	if err != nil {
		return nil, nil, err
	}
	list := lw.ListWithContextFunc
	lw.ListWithContextFunc = func(
		ctx context.Context, options metav1.ListOptions,
	) (runtime.Object, error) {
		all, err := list(ctx, options)
		if all, ok := all.(*corev1.ConfigMapList); ok && err == nil {
			var kept []corev1.ConfigMap
			for i, item := range all.Items {
				if i%2 == 0 {
					item.Labels = map[string]string{"kept": "true"}
					kept = append(kept, item)
				}
			}
			all.Items = kept
		}
		return all, err
	}
	return lw, example, nil
}

func untyped(url string) (*cache.ListWatch, runtime.Object, error) {
	client, err := dynamic.NewForConfig(config(url))
	if err != nil {
		return nil, nil, err
	}
	all := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(configMap)
	return &cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: all.Watch,
	}, example, nil
}

func metadataOnly(url string) (*cache.ListWatch, runtime.Object, error) {
	client, err := metadata.NewForConfig(binary(url))
	if err != nil {
		return nil, nil, err
	}
	all := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	return &cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: func(
			ctx context.Context, options metav1.ListOptions,
		) (watch.Interface, error) {
			return all.Watch(ctx, options)
		},
	}, &metav1.PartialObjectMetadata{}, nil
}

// ofRest has a client of its own, as those of custom resources.
func ofRest(
	c *rest.Config, codecs runtime.NegotiatedSerializer, example runtime.Object,
) (*cache.ListWatch, runtime.Object, error) {
	c.APIPath, c.GroupVersion, c.NegotiatedSerializer = "/api", &corev1.SchemeGroupVersion, codecs
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, nil, err
	}
	return cache.NewListWatchFromClient(client, "configmaps", "", fields.Everything()), example, nil
}

// converts decodes with conversion and defaults.
type converts struct{ serializer.CodecFactory }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (c converts) DecoderToVersion(d runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return c.CodecFactory.DecoderToVersion(d, corev1.SchemeGroupVersion)
}

// settings is a ConfigMap that reads itself, as some custom resources do.
type settings struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Size int
}

type settingsList struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []settings
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *settings) UnmarshalJSON(text []byte) error {
	var c corev1.ConfigMap
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	*s = settings{c.TypeMeta, c.ObjectMeta, len(c.Data["text"])}
	return nil
}

// GetObjectKind implements runtime.Object.
func (s *settings) GetObjectKind() schema.ObjectKind { return &s.TypeMeta }

// DeepCopyObject implements runtime.Object.
func (s *settings) DeepCopyObject() runtime.Object {
	return &settings{s.TypeMeta, *s.ObjectMeta.DeepCopy(), s.Size}
}

// GetObjectKind implements runtime.Object.
func (l *settingsList) GetObjectKind() schema.ObjectKind { return &l.TypeMeta }

// DeepCopyObject implements runtime.Object.
func (l *settingsList) DeepCopyObject() runtime.Object {
	list := &settingsList{l.TypeMeta, l.ListMeta, nil}
	for i := range l.Items {
		list.Items = append(list.Items, *l.Items[i].DeepCopyObject().(*settings))
	}
	return list
}
