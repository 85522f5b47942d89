// SPDX-License-Identifier: Apache-2.0

// Package spans shows changes and reconciles as OpenTelemetry spans.
//
//	informer -> [Handler] -> handlers -> workqueue -> [Reconcile] -> [Requests] -> server
//
// Each call of a handler is a span, and so is each reconcile, with links to the calls that caused
// it, and to the attempt that failed before it. The requests of a reconcile are its child spans.
//
// To use it, make [Spans] with [New], and wrap the handler of a controller, its reconcile function
// and the client's transport. Without a provider nothing is recorded.
//
// Read spans.go and requests.go; then run go test -v ./observe/spans. Goroutines: none. Locking:
// the mutex of Spans, under which no code of the program runs.
package spans

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/boundedmap"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/store"
)

// maxLinks bounds the links of one reconcile. Those of further calls are only counted.
const maxLinks = 8

// maxKeys bounds the keys that wait for their reconcile. Further ones have no causes, unless one of
// these is stale, as boundedmap defines it. Tests lower it.
var maxKeys = 1 << 16

// The attributes of the spans.
const (
	attrController = attribute.Key("k8s.controller.name")
	attrKey        = attribute.Key("k8s.object.key")
	attrVersion    = attribute.Key("k8s.object.resource_version")
	attrID         = attribute.Key("k8s.controller.reconcile_id")
	attrMore       = attribute.Key("k8s.controller.more_causes")
	attrRequeue    = attribute.Key("k8s.controller.requeue_after_seconds")
	attrErrorType  = attribute.Key("exception.type")
	attrError      = attribute.Key("exception.message")
)

// Spans are those of one controller. Its methods are safe for concurrent use.
type Spans[K comparable] struct {
	tracer     trace.Tracer
	controller string
	keysOf     func(obj any) []K

	mu     sync.Mutex
	causes *boundedmap.Map[K, causes]
}

// causes are what has happened to a key since its last reconcile began.
type causes struct {
	links []trace.Link
	more  int
}

// New returns the spans of a controller. keysOf returns the keys that its handler adds for an
// object or a tombstone, or nil if it ignores the object. A nil provider records nothing.
func New[K comparable](
	provider trace.TracerProvider, controller string, keysOf func(obj any) []K,
) *Spans[K] {
	return &Spans[K]{
		tracer: tracerOf(provider), controller: controller, keysOf: keysOf,
		causes: boundedmap.New[K, causes](maxKeys),
	}
}

func tracerOf(provider trace.TracerProvider) trace.Tracer {
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	return provider.Tracer("example.com/informerstack/observe/spans")
}

// Handler returns a handler that makes a span of each call, and then calls inner.
func (s *Spans[K]) Handler(inner informer.ResourceEventHandler) informer.ResourceEventHandler {
	return handler[K]{s, inner}
}

type handler[K comparable] struct {
	spans *Spans[K]
	inner informer.ResourceEventHandler
}

// Unwrap lets messages name the handler inside.
func (h handler[K]) Unwrap() informer.ResourceEventHandler { return h.inner }

// OnAdd implements informer.ResourceEventHandler.
func (h handler[K]) OnAdd(obj any, isInInitialList bool) {
	defer h.spans.call("add", obj).End()
	h.inner.OnAdd(obj, isInInitialList)
}

// OnUpdate implements informer.ResourceEventHandler.
func (h handler[K]) OnUpdate(oldObj, newObj any) {
	defer h.spans.call("update", newObj).End()
	h.inner.OnUpdate(oldObj, newObj)
}

// OnDelete implements informer.ResourceEventHandler.
func (h handler[K]) OnDelete(obj any) {
	defer h.spans.call("delete", obj).End()
	h.inner.OnDelete(obj)
}

// call begins the span of a call, which is a cause of the reconciles of its keys.
func (s *Spans[K]) call(what string, obj any) trace.Span {
	attributes := []attribute.KeyValue{attrController.String(s.controller)}
	if key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		attributes = append(attributes, attrKey.String(printable.Short(key)))
	}
	if object, err := meta.Accessor(obj); err == nil {
		version := printable.Short(object.GetResourceVersion())
		attributes = append(attributes, attrVersion.String(version))
	}
	_, span := s.tracer.Start(context.Background(), "informer "+what, trace.WithNewRoot(),
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attributes...))
	if own := span.SpanContext(); own.IsValid() {
		for _, key := range s.keysOf(obj) {
			s.caused(key, own)
		}
	}
	return span
}

func (s *Spans[K]) caused(key K, by trace.SpanContext) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _ := s.causes.Get(key)
	if len(c.links) < maxLinks {
		c.links = append(c.links, trace.Link{SpanContext: by})
	} else {
		c.more++
	}
	s.causes.Put(key, c)
}

func (s *Spans[K]) take(key K) causes {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, _ := s.causes.Get(key)
	s.causes.Delete(key)
	return c
}

// Reconcile returns a function that makes a span of each call of next. Its context has the span.
func (s *Spans[K]) Reconcile(next controller.ReconcileFunc[K]) controller.ReconcileFunc[K] {
	return func(ctx context.Context, key K) (result controller.Result, err error) {
		because := s.take(key)
		ctx, span := s.tracer.Start(ctx, "reconcile "+s.controller,
			trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(because.links...),
			trace.WithAttributes(attrController.String(s.controller),
				attrKey.String(printable.Short(fmt.Sprint(key))),
				attrID.String(string(controller.ReconcileIDFromContext(ctx)))))
		if because.more > 0 {
			span.SetAttributes(attrMore.Int(because.more))
		}
		returned := false
		defer func() {
			switch {
			case !returned: // next panicked, or ended its goroutine
				span.SetStatus(codes.Error, "reconcile did not return")
			case err != nil:
				recordError(span, err)
			case result.RequeueAfter > 0:
				span.SetAttributes(attrRequeue.Float64(result.RequeueAfter.Seconds()))
			}
			if again := !returned || err != nil; again && span.SpanContext().IsValid() {
				s.caused(key, span.SpanContext()) // the next attempt
			}
			span.End()
		}()
		result, err = next(ctx, key)
		returned = true
		return result, err
	}
}

// recordError notes err as Span.RecordError does, with a text that is cut. It survives an Error
// method that panics.
func recordError(span trace.Span, err error) {
	text := printable.Short(fmt.Sprint(err))
	span.AddEvent("exception", trace.WithAttributes(
		attrErrorType.String(fmt.Sprintf("%T", err)), attrError.String(text)))
	span.SetStatus(codes.Error, text)
}
