// SPDX-License-Identifier: Apache-2.0

// Package order is a test. Its output and result depend on everything that two runs of a Go program
// do not share.
package order

import (
	crand "crypto/rand"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"
)

func TestOrder(t *testing.T) {
	t.Log("time", time.Now(), "random", crand.Text(), rand.Uint64(), "PATH", os.Getenv("PATH"))
	keys := map[int]bool{}
	for n := range 100 {
		keys[n] = true
	}
	for n := range keys {
		t.Log("key", n)
	}
	var goroutines sync.WaitGroup
	for n := range 10 {
		goroutines.Go(func() { t.Log("goroutine", n) })
	}
	goroutines.Wait()
	a, b := make(chan int, 8), make(chan int, 8)
	for n := range 4 {
		a <- n
		b <- n
	}
	first := ""
	for range 4 {
		select {
		case <-a:
			first += "a"
		case <-b:
			first += "b"
		}
	}
	t.Log(first)
	if first == "bbaa" {
		t.Error("an order that the test does not expect")
	}
}
