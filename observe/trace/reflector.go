// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"time"

	"example.com/informerstack/reflector"
)

// ReflectorOptions returns options that also trace the transitions of the reflector's state
// machine, with their reasons, and its waits. The end of the reflector is not traced.
func ReflectorOptions(options reflector.Options, sink Sink) reflector.Options {
	observe, backoff := options.Observe, options.Metrics.Backoff
	options.Observe = func(t reflector.Transition) {
		if observe != nil {
			observe(t)
		}
		if t.To == reflector.Idle {
			return
		}
		what, detail := fmt.Sprintf("%s -> %s", t.From, t.To), ""
		if t.From == reflector.Watching && t.Err == nil {
			detail = "the watch ended"
		}
		sink.collection(Reflector, what, "", detail, t.Err)
	}
	options.Metrics.Backoff = func(d time.Duration) {
		if backoff != nil {
			backoff(d)
		}
		what, detail := string(reflector.BackingOff), "for "+d.Round(time.Millisecond).String()
		sink.collection(Reflector, what, "", detail, nil)
	}
	return options
}
