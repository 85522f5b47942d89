// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"time"

	"example.com/informerstack/controller"
)

// Reconcile traces each call of a reconcile function: its start, and its end with what came of it.
func Reconcile[K comparable](reconcile controller.ReconcileFunc[K], sink Sink) controller.ReconcileFunc[K] {
	return func(ctx context.Context, key K) (controller.Result, error) {
		start := time.Now()
		sink(Event{Time: start, Hop: Worker, What: "reconcile", Key: fmt.Sprint(key)})
		result, err := reconcile(ctx, key)
		detail := "took " + time.Since(start).Round(time.Microsecond).String()
		if result.RequeueAfter > 0 {
			detail += ", again after " + result.RequeueAfter.String()
		}
		sink.send(Event{Time: time.Now(), Hop: Worker, What: "reconciled", Key: fmt.Sprint(key), Detail: detail}, err)
		return result, err
	}
}
