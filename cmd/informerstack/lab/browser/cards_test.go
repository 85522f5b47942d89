// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// The card of the store shows how current the copy is: the version that it holds, as of when it has
// everything, and that a change may be missing, in both languages.
func TestPage_ShowsHowCurrentTheStoreIs(t *testing.T) {
	s := newScene(t, desktop)
	shows := func(what, version, text string) {
		t.Helper()
		s.await(what, fmt.Sprintf(`((line) => line.includes(%s) && line.includes(%s))(
			document.querySelector(".card-store .fresh").innerText)`,
			quoted("rv "+version), quoted(text)))
	}
	before := s.watching()
	assert.NotNil(t, before.Store.AsOf)
	shows("the version and the time", before.Store.RV, "current as of")

	s.use("stall")
	s.use("create")
	behind := s.until("the store is behind", func(f lab.Frame) bool { return !current(f) })
	assert.Equal(t, before.Store.RV, behind.Store.RV)
	shows("still the old version", before.Store.RV, "current as of")
	s.use("cut")
	after := s.watching()
	shows("the new version", after.Store.RV, "current as of")

	s.use("run")
	s.until("pause", func(f lab.Frame) bool { return f.Mode == lab.Pause })
	s.use("expire")
	s.frames.until("the error is held", func(f lab.Frame) bool { return len(f.Held) > 0 })
	s.use("step") // the list that follows is held
	lost := s.until("a loss", func(f lab.Frame) bool { return f.Store.AsOf == nil })
	shows("a loss", lost.Store.RV, "a change may be missing")
	s.use("language")
	shows("a loss, in Chinese", lost.Store.RV, "可能缺少变更")
	s.use("run")
	s.until("the list is stored", func(f lab.Frame) bool { return f.Store.AsOf != nil })
	shows("the time", s.watching().Store.RV, "数据截至")
}

// An empty queue says nothing about the store, which is behind while a watch is stalled, and an
// empty log says nothing about the past: it may have been compacted.
func TestEmpty_ClaimsNothingElse(t *testing.T) {
	s := newScene(t, desktop)
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
