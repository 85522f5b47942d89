// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	bucketsPerDoubling = 8
	bucketCount        = 36 * bucketsPerDoubling // up to 19 hours
)

// latencies counts durations in buckets, each 9 % wider than the one before, from a microsecond.
type latencies [bucketCount]atomic.Int64

func (l *latencies) add(d time.Duration) {
	at := math.Log2(max(float64(d)/float64(time.Microsecond), 1)) * bucketsPerDoubling
	l[min(int(at), bucketCount-1)].Add(1)
}

// counts is a copy of latencies.
type counts [bucketCount]int64

// take returns the durations since the last call.
func (l *latencies) take() counts {
	var c counts
	for i := range l {
		c[i] = l[i].Swap(0)
	}
	return c
}

func (c *counts) merge(other counts) {
	for i, n := range other {
		c[i] += n
	}
}

func (c *counts) total() int64 {
	var sum int64
	for _, n := range c {
		sum += n
	}
	return sum
}

// quantile returns a duration that the share q of the durations does not exceed; 0 without any.
func (c *counts) quantile(q float64) time.Duration {
	rest := int64(math.Ceil(q * float64(c.total())))
	if rest == 0 {
		return 0
	}
	for i, n := range c {
		if rest -= n; rest <= 0 {
			return time.Duration(math.Exp2(float64(i+1)/bucketsPerDoubling) *
				float64(time.Microsecond))
		}
	}
	return 0
}
