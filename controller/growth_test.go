// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"

	"example.com/informerstack/internal/measure"
)

// An object may concern any number of keys: an update takes linear time in their number.
func TestGrowth_KeysOfOneObject(t *testing.T) {
	c := New("test", func(context.Context, int) (Result, error) { return Result{}, nil }, Options[int]{})
	defer c.Queue().ShutDown()
	handler := c.MapHandler(func(obj any) ([]int, error) {
		keys := make([]int, obj.(int))
		for i := range keys {
			keys[i] = i + len(keys)
		}
		return keys, nil
	})
	measure.Growth(t, 2000, func(n int) { handler.OnUpdate(n, n) })
}
