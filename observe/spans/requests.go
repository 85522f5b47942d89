// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"example.com/informerstack/internal/helpers/printable"
)

// The attributes of requests are those of OpenTelemetry's conventions for HTTP.
const (
	attrMethod = attribute.Key("http.request.method")
	attrPath   = attribute.Key("url.path")
	attrServer = attribute.Key("server.address")
	attrStatus = attribute.Key("http.response.status_code")
)

// Requests makes a span of each request with a context that has a span, as that of a reconcile has.
// The request carries the span's identity to the server. The span ends when the header of the
// answer has arrived. The result is for rest.Config.Wrap.
func Requests(provider trace.TracerProvider) func(http.RoundTripper) http.RoundTripper {
	tracer := tracerOf(provider)
	return func(next http.RoundTripper) http.RoundTripper { return requests{next, tracer} }
}

type requests struct {
	next   http.RoundTripper
	tracer trace.Tracer
}

// WrappedRoundTripper lets client-go find the transport inside.
func (t requests) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t requests) RoundTrip(r *http.Request) (*http.Response, error) {
	if !trace.SpanContextFromContext(r.Context()).IsValid() {
		return t.next.RoundTrip(r)
	}
	ctx, span := t.tracer.Start(r.Context(), r.Method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attrMethod.String(r.Method), attrServer.String(r.URL.Hostname()),
			attrPath.String(printable.Short(r.URL.Path))))
	defer span.End()
	r = r.Clone(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	response, err := t.next.RoundTrip(r)
	switch {
	case err != nil:
		recordError(span, err)
	default:
		span.SetAttributes(attrStatus.Int(response.StatusCode))
		if response.StatusCode >= http.StatusBadRequest {
			span.SetStatus(codes.Error, "")
		}
	}
	return response, err
}
