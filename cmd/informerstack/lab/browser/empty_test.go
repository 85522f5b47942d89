// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"

	"example.com/informerstack/cmd/informerstack/lab"
)

// An empty queue says nothing about the store, which is behind while a watch is stalled, and an
// empty log says nothing about the past: it may have been compacted.
func TestEmpty_ClaimsNothingElse(t *testing.T) {
	t.Parallel()
	s := newScene(t, desktop)
	s.control = pressKey
	s.use("stall")
	s.use("change")
	s.until("a change that the store lacks", func(f lab.Frame) bool {
		return len(f.Server.Log) > 0 && f.Server.Log[len(f.Server.Log)-1].RV != f.Store.RV
	})
	s.await("the store is behind", `document.querySelector(".card-store .hot")`)
	s.await("the queue claims only that it is empty",
		`document.querySelector(".card-queue .empty")?.textContent === "empty: no change waits here"`)
	s.use("compact")
	s.await("the log is empty, and was not always",
		`document.querySelector(".card-server .empty")?.textContent === "the log holds no changes" &&
		document.querySelector(".card-server .note").textContent.includes("Compacted")`)
}
