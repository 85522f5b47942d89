// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"
)

const (
	// sizesWait is how long a page waits until stores are measured. The next page has the rest.
	sizesWait = 100 * time.Millisecond
	// maxLargest is the number of fields that the page shows.
	maxLargest = 5
)

// measure adds the sizes of the objects to informers, as far as they are known in time.
func measure(informers []Informer) {
	timeout, isLate := time.After(sizesWait), false
	for n := range informers {
		i := &informers[n]
		if i.store == nil || i.meter == nil || i.stores(time.Now()) {
			continue // a store that may be locked for long is not read
		}
		if done := i.meter.Measure(i.store); done != nil && !isLate {
			select {
			case <-done:
			case <-timeout:
				isLate = true // the others are not waited for either
			}
		}
		i.sizes = i.meter.Last(i.Objects)
		i.Bytes, i.Largest = i.sizes.Bytes, i.sizes.Fields[:min(maxLargest, len(i.sizes.Fields))]
	}
}

func bytesText(n int64) string {
	if n < 1_000_000 {
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
