// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

// captions returns the captions of hops in a language.
func (p *tab) captions(lang string, hops []lab.HopView) []string {
	p.t.Helper()
	encoded, err := json.Marshal(hops)
	require.NoError(p.t, err)
	return evaluate[[]string](p, fmt.Sprintf(`Promise.all(["caption", "text"].map(
		(name) => import("./lab/assets/" + name + ".js"))).then(([caption, text]) => {
			text.setLanguage(%q);
			return %s.map((hop) => caption.textOf(hop) ?? "");
		})`, lang, encoded))
}

// A caption says what has happened at this hop.
func TestCaption_SaysWhatHasHappened(t *testing.T) {
	s := newScene(t, desktop)
	captionsOfFacts(t, s)
	captionsOfAllFacts(t, s)
	captionsOfALoop(t, s)
}

// captionsOfFacts checks what captions say. Without a fact they claim nothing about the hop.
func captionsOfFacts(t *testing.T, s *scene) {
	type args = map[string]string
	hop := func(name, fact string, args args) lab.HopView {
		piece, what, _ := strings.Cut(name, " ")
		return lab.HopView{Hop: piece, What: what, Key: "ns/a", RV: "7", Fact: fact, Args: args}
	}
	failed := func(h lab.HopView, text string) lab.HopView {
		h.Error = text
		return h
	}
	tests := []struct {
		hop              lab.HopView
		says, zh, saysNo string
	}{
		{hop("server MODIFIED", "own", nil), "The write of a worker comes back",
			"worker 的写入回来了", ""},
		{hop("server MODIFIED", "", nil), "a change of [[ns/a]], which is version 7",
			"版本 7", "worker"},
		{hop("server ADDED", "initial", nil), "older than the watch", "打开之前", "new to it"},
		{hop("server DELETED", "", nil), "[[ns/a]] is gone", "已不存在", "as version"},
		{hop("server PATCH", "conflict", nil), "refuses", "409 Conflict", "has written"},
		{hop("server PUT", "", nil), "has written to the server", "写的是服务器", ""},
		{failed(hop("server PUT", "fenced", args{"n": "3"}), "older"),
			"token 3 was not done: older", "token 3", "worker"},
		{failed(hop("server WATCH", "expired", nil), "too old"), "no longer has all changes",
			"不完整", "sends every"},
		{failed(hop("server WATCH", "", nil), "refused"), "could not be opened: refused", "没能打开",
			"sends every"},
		{failed(hop("server ERROR", "expired", nil), "410 Expired"), "410 Gone", "410 Gone", ""},
		{hop("deltafifo Add", "", nil), "A delta of [[ns/a]]", "delta", "behind"},
		{hop("deltafifo Update", "beside", args{"n": "1"}), "behind 1 earlier one of",
			"1 个", "ones"},
		{hop("deltafifo Update", "beside", args{"n": "2"}), "behind 2 earlier ones", "2 个", ""},
		{hop("deltafifo Pop", "many", args{"n": "3", "types": "Added, Updated, Deleted"}),
			"all 3 deltas of [[ns/a]], oldest first: Added, Updated, Deleted", "3 个", ""},
		{hop("deltafifo Pop", "", nil), "pops [[ns/a]]", "取出", "all"},
		{hop("store Update", "replaces", args{"old": "5"}),
			"version 7 of [[ns/a]] replaces version 5", "版本 5", ""},
		{hop("store Update", "same", nil), "it had this version already", "早已", "replaces"},
		{failed(hop("store Add", "", nil), "full"), "failed: full", "失败了：full", "has [[ns/a]] now"},
		{hop("handler OnUpdate", "same", nil), "nothing has changed", "什么都没变", "twice"},
		{hop("handler OnAdd", "initial", nil), "does not mean that the object was created",
			"刚刚创建", ""},
		{hop("handler OnDelete", "lost", nil), "itself was missed", "墓碑", ""},
		{hop("handler OnDelete", "", nil), "the last state", "最后的状态", "missed"},
		{hop("workqueue Add", "queued", nil), "nothing happens", "什么也不会发生", "processing"},
		{hop("workqueue Add", "again", nil), "Only Done queues it",
			"只有 Done", "nothing happens"},
		{hop("workqueue Add", "", nil), "the key [[ns/a]], not the object",
			"不是对象", "nothing happens"},
		{hop("workqueue Get", "merged", args{"n": "3"}), "added 3 times", "加入了 3 次", ""},
		{hop("workqueue AddRateLimited", "delay", args{"n": "1", "delay": "5ms"}),
			"1 time in a row. [[ns/a]] waits under `delayed` and comes back in 5ms", "5ms 后",
			"doubles"},
		{hop("workqueue Forget", "gaveUp", nil), "gives [[ns/a]] up", "放弃了", "succeeded"},
		{hop("workqueue Forget", "success", nil), "has succeeded", "成功了", "gives"},
		{hop("workqueue Forget", "", nil), "no longer counted", "不再记录", "succeeded"},
		{hop("workqueue Done", "again", nil), "queued again", "重新排队", ""},
		{hop("workqueue Done", "", nil), "leaves `processing`", "离开", "again"},
		{hop("worker reconcile", "gone", nil), "no longer has the object", "已经没有", ""},
		{hop("worker reconciled", "nothing", nil), "written nothing", "什么都没有写", "comes back"},
		{hop("worker reconciled", "wrote", args{"version": "8"}), "version 8 now. This comes back",
			"版本 8", "nothing"},
		{hop("worker reconciled", "", nil), "reconcile has returned", "返回了", "comes back"},
		{failed(hop("worker reconciled", "", nil), "broken"), "an error: broken", "返回了错误：broken",
			"comes back"},
		{failed(hop("worker reconciled", "", nil), "{key} $&"), "an error: {key} $&",
			"{key} $&", ""},
		{hop("reflector listing", "", nil), "", "", "undefined"},
	}
	var hops []lab.HopView
	for _, test := range tests {
		hops = append(hops, test.hop)
	}
	en, zh := s.captions("en", hops), s.captions("zh", hops)
	for i, test := range tests {
		name := test.hop.Hop + " " + test.hop.What + " " + test.hop.Fact
		assert.Contains(t, en[i], test.says, name)
		if test.saysNo != "" {
			assert.NotContains(t, en[i], test.saysNo, name)
		}
		assert.Contains(t, zh[i], test.zh, name)
	}
}

// captionsOfAllFacts checks that each text is for a fact that exists, and has all its arguments.
func captionsOfAllFacts(t *testing.T, s *scene) {
	source, err := os.ReadFile("../facts.go")
	require.NoError(t, err)
	facts := []string{"failed"} // of an error, not of a fact
	name := regexp.MustCompile(`(?m)^\t\w+Fact += "(\w+)"`)
	for _, match := range name.FindAllSubmatch(source, -1) {
		facts = append(facts, string(match[1]))
	}
	require.Greater(t, len(facts), 20)
	names := evaluate[[]string](s.tab, `import("./lab/assets/messages.en.js").then(({ default: en }) =>
		Object.entries(en.caption).flatMap(([hop, texts]) =>
			Object.keys(texts).map((name) => hop + " " + name)))`)
	require.Greater(t, len(names), 50)
	var hops []lab.HopView
	for _, name := range names {
		words := append(strings.Fields(name), "")
		h := lab.HopView{Hop: words[0], What: words[1], Key: "ns/a", RV: "7"}
		if h.Fact = words[2]; h.Fact == "failed" {
			h.Fact, h.Error = "", "broken"
		} else if h.Fact != "" {
			assert.Contains(t, facts, h.Fact, name)
		}
		h.Args = map[string]string{
			"n": "2", "old": "5", "types": "Added", "delay": "1s", "version": "8",
		}
		hops = append(hops, h)
	}
	for _, lang := range []string{"en", "zh"} {
		texts := s.captions(lang, hops)
		for i, text := range texts {
			assert.NotEmpty(t, text, names[i])
			assert.NotContains(t, text, "{", names[i])
			assert.NotContains(t, text, "undefined", names[i])
			assert.Equal(t, i, slices.Index(texts, text), "%s has a text of its own", names[i])
		}
	}
}

// captionsOfALoop checks the captions of a running program: the write of a worker comes back, and
// the second call of reconcile writes nothing, so the loop ends.
func captionsOfALoop(t *testing.T, s *scene) {
	key := s.work()
	s.choose(`.slow input`, "2")
	s.until("slow", func(f lab.Frame) bool { return f.Mode == lab.Slow })
	s.frames.forget()
	s.use("change")
	hops := func() []lab.HopView {
		s.frames.mu.Lock()
		defer s.frames.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(s.frames.hops), func(h lab.HopView) bool {
			return h.Key != key
		})
	}
	s.frames.until("the second call has ended", func(lab.Frame) bool {
		calls := 0
		for _, h := range hops() {
			if h.Hop == "worker" && h.What == "reconciled" {
				calls++
			}
		}
		return calls == 2
	})
	var told, returned []string
	for i, text := range s.captions("en", hops()) {
		told = append(told, text)
		if hops()[i].What == "reconciled" {
			returned = append(returned, text)
		}
	}
	assert.Contains(t, returned[0], "This comes back as a change")
	assert.Contains(t, returned[1], "has written nothing")
	all := strings.Join(told, "\n")
	assert.Equal(t, 1, strings.Count(all, "The write of a worker comes back"), all)
	assert.Equal(t, 1, strings.Count(all, "which this controller wrote itself"), all)
}
