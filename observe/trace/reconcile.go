// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"time"

	"example.com/informerstack/controller"
)

// Reconcile traces the start of each call of a reconcile function, and its end with the result.
func Reconcile[K comparable](
	reconcile controller.ReconcileFunc[K], sink Sink,
) controller.ReconcileFunc[K] {
	return func(ctx context.Context, key K) (controller.Result, error) {
		start := time.Now()
		sink.send(Event{Hop: Worker, What: "reconcile", Key: fmt.Sprint(key)}, nil)
		result, err := reconcile(ctx, key)
		detail := "took " + time.Since(start).Round(time.Microsecond).String()
		if result.RequeueAfter > 0 {
			detail += ", again after " + result.RequeueAfter.String()
		}
		sink.send(Event{Hop: Worker, What: "reconciled", Key: fmt.Sprint(key), Detail: detail}, err)
		return result, err
	}
}
