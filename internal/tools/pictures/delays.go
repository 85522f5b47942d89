// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"time"

	"example.com/informerstack/workqueue"
)

// failures is the number of failures in the plot of delays.
const failures = 19

// drawDelays plots the delays of a key that fails again and again.
func drawDelays(string) ([]byte, error) {
	const key = "ns/a"
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	c := &canvas{
		width: 980, height: 380, title: "The delays of a key that fails again and again",
		desc: "The delay doubles with each failure, from 5 ms to 1000 s. Forget returns it to " +
			"the first delay.",
	}
	c.text("name", 30, 38, "Delay before the next attempt, by number of failures in a row")
	for power := -3; power <= 3; power++ {
		delay := time.Duration(math.Pow(10, float64(power+9)))
		c.path("grid", "", point{90, heightOf(delay)}, point{950, heightOf(delay)})
		c.anchored("end", "small dim", 82, heightOf(delay)+4, short(delay))
	}
	var waited time.Duration
	bottom := heightOf(time.Millisecond)
	for n := range failures {
		delay := limiter.When(key)
		waited += delay
		x := 104 + n*40
		c.rect("k0", x, heightOf(delay), 26, bottom-heightOf(delay), 3)
		c.centred("small dim", x+13, heightOf(delay)-7, short(delay))
		c.centred("small dim", x+13, bottom+18, fmt.Sprint(n+1))
	}
	limiter.Forget(key)
	first := limiter.When(key)
	x := 124 + failures*40
	c.rect("k2", x, heightOf(first), 26, bottom-heightOf(first), 3)
	c.centred("small dim", x+13, heightOf(first)-7, short(first))
	c.centred("small", x+8, bottom+18, "after Forget")
	c.text("small dim", 90, bottom+42, fmt.Sprintf(
		"A key without Forget has waited %s after %d failures.",
		waited.Round(time.Second), failures))
	return c.svg(), nil
}

// heightOf is the y of a delay on a logarithmic scale.
func heightOf(delay time.Duration) int {
	const top, decade = 70, 42 // of 1000 s, and pixels for a factor of ten
	return top + int(math.Round(decade*(3-math.Log10(delay.Seconds()))))
}

// short is a delay with two digits.
func short(delay time.Duration) string {
	switch {
	case delay < time.Second:
		return fmt.Sprintf("%d ms", delay.Milliseconds())
	case delay < 10*time.Second:
		return fmt.Sprintf("%.1f s", delay.Seconds())
	}
	return fmt.Sprintf("%.0f s", delay.Seconds())
}
