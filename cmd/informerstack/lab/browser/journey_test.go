// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/lab"
)

// A click on a key follows that key only, and its journey has every hop with its time.
func TestPage_FollowsAKeyOnItsJourney(t *testing.T) {
	s := newScene(t, desktop)
	s.control = clickControl
	s.watching()
	key := s.follow(".card-store .chip")
	s.frames.forget()
	s.use("change")
	s.frames.untilHop("workqueue", "Forget", key)
	s.await("each lane has an event", `document.querySelectorAll(".lane").length === 6 &&
		[...document.querySelectorAll(".lane")].every((lane) => lane.querySelector(".dot"))`)
	s.await("the journey has its length",
		`/\d(µs|ms|s) /.test(document.querySelector(".journey small").textContent.replace(" ", "") + " ")`)
	s.await("other keys recede", `[...document.querySelectorAll(".card-store .tiles .chip")].every(
		(chip) => chip.classList.contains("off") === (chip.dataset.key !== `+quoted(key)+`))`)
	s.use("events")
	s.await("only its events are listed", `[...document.querySelectorAll(".events .chip")]
		.every((chip) => chip.dataset.key === `+quoted(key)+`)`)

	s.frames.forget()
	s.use("change")
	s.frames.untilHop("workqueue", "Forget", key)
	s.watching()
	count := `document.querySelector(".pager .dim").textContent`
	s.await("several journeys", `Number(`+count+`.split("/")[1]) >= 2`)
	s.click(".pager button:first-child")
	s.await("an earlier journey", `(([at, of]) => at === of - 1)(`+count+`.split("/").map(Number))`)
	s.click(".pager button:last-child")
	s.await("the newest journey", `(([at, of]) => at === of)(`+count+`.split("/").map(Number))`)

	s.press("f")
	s.frames.forget()
	s.use("change")
	s.frames.untilHop("workqueue", "AddRateLimited", key)
	s.await("a failed reconcile is not called reconciled", `[...document.querySelectorAll(
		".events b")].some((what) => what.textContent === "failed") &&
		!document.querySelector(".lane:last-child .what").textContent.includes("reconciled")`)
	s.press("f")

	s.click(".following .btn")
	s.click(".changelog .cell:last-child")
	s.await("a cell of the change log is a key too", element(".following .chip"))
	s.click(".following .chip")
	s.await("the second click ends it", `!document.querySelector(".following")`)
}

// stops notes each event that the caption names, and the key's version in the store at that moment,
// until the worker has the key. A slow page may show a reconcile together with its write.
const stops = `new Promise((resolve) => {
	const stops = [];
	const check = () => {
		const event = document.querySelector(".caption b")?.textContent;
		const row = document.querySelector(".card-store .tiles .chip.followed").parentElement;
		if (["worker reconcile", "server PATCH"].includes(event)) return resolve(stops);
		if (event && event !== stops.at(-1)?.event) stops.push({ event, stored: row.textContent });
		setTimeout(check, 30);
	};
	check();
})`

// In slow motion a journey takes at least the delay per hop, and causes come before their effects:
// the store changes when the item has arrived.
func TestPage_ShowsCausesFirst(t *testing.T) {
	s := newScene(t, moving)
	s.control = clickControl
	s.watching()
	key := s.follow(".card-store .chip")
	s.choose(`.slow input`, "5")
	s.until("slow", func(f lab.Frame) bool { return f.Mode == lab.Slow && f.DelayMs == 800 })
	s.frames.forget()
	s.use("change")
	var events, changes []string
	stored := ""
	for _, stop := range evaluate[[]struct{ Event, Stored string }](s.tab, stops) {
		events = append(events, stop.Event)
		if stored != "" && stop.Stored != stored {
			changes = append(changes, stop.Event)
		}
		stored = stop.Stored
	}
	assert.Equal(t, []string{"server MODIFIED", "delta queue Update", "delta queue Pop",
		"store Update", "handler OnUpdate", "workqueue Add", "workqueue Get",
	}, events)
	assert.Equal(t, []string{"store Update"}, changes, "it has arrived after Pop")
	first := s.frames.untilHop("server", "MODIFIED", key)
	last := s.frames.untilHop("worker", "reconciled", key)
	assert.Greater(t, last.Time.Sub(first.Time).Seconds(), 4.0, "five hops of 800 ms")
}

// A write is recorded when it is answered, but it is shown before the event that it has caused.
func TestPage_ShowsAWriteBeforeItsEvent(t *testing.T) {
	s := newScene(t, desktop)
	rails := evaluate[[]string](s.tab, `import("./lab/assets/present.js").then(({ Presenter }) => {
		const rails = [];
		const presenter = new Presenter({
			model: { frame: {}, show() {} }, depart: (rail) => rails.push(rail), arrive() {},
			still: () => false,
		});
		const hop = (what, key) => ({ hop: "server", what, key });
		presenter.take({ seq: 1, mode: "slow", delayMs: 0, hops: [
			hop("ADDED", "b"), hop("MODIFIED", "a"), hop("PATCH", "a"),
		] });
		presenter.flush();
		return rails;
	})`)
	assert.Equal(t, []string{"wire", "write", "wire"}, rails)
}

// The heading of each card explains the piece, with its code and its chapter.
func TestPage_ExplainsEachPiece(t *testing.T) {
	s := newScene(t, desktop)
	seen := map[string]bool{}
	pieces := evaluate[[]string](s.tab,
		`[...document.querySelectorAll(".flow .card")].map((card) => card.dataset.piece)`)
	assert.Len(t, pieces, 8)
	for _, piece := range pieces {
		s.click("#card-" + piece + " .title")
		s.await("the heading is marked", `document.querySelector("#card-`+piece+
			` .title[aria-expanded=true]") && document.querySelector(".sheet .piece h2")`)
		text := s.texts(".sheet .piece")[0]
		assert.False(t, seen[text], "%s has a text of its own", piece)
		seen[text] = true
		assert.NotContains(t, text, "piece."+piece, "a message is missing")
		assert.GreaterOrEqual(t, len(s.texts(".sheet .piece .links li")), 2)
		assert.GreaterOrEqual(t, len(s.texts(".sheet .piece .laws li")), 2)
	}
}

// The reader chooses an index of the store.
func TestPage_ShowsTheChosenIndex(t *testing.T) {
	s := newScene(t, desktop)
	for name, values := range map[string]int{"label:team": 3, "namespace": 1} {
		s.choose(".index select", name)
		s.until(name, func(f lab.Frame) bool { return f.Store.Index.Name == name })
		s.await("the values are shown", fmt.Sprintf(
			`document.querySelectorAll(".index dt").length === %d`, values))
	}
}
