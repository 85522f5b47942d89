// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/cmd/informerstack/lab"
)

// hostilePage is a page of another origin. It sends each body to each target in every way that asks
// no server for permission first, from itself and from a sandboxed frame, which has no origin.
const hostilePage = `<!doctype html><link rel="icon" href="data:,"><script>
const sent = [];
const attack = async (targets) => {
	for (const { url, body } of targets) {
		for (const type of ["", "text/plain", "application/x-www-form-urlencoded"]) {
			const blob = new Blob([body], { type });
			await fetch(url, { method: "POST", mode: "no-cors", body: blob }).catch(() => {});
			navigator.sendBeacon(url, blob);
			await fetch(url, { mode: "no-cors" }).catch(() => {});
			sent.push(url);
		}
		const frame = Object.assign(document.createElement("iframe"), { name: "f" + sent.length });
		document.body.append(frame);
		const form = Object.assign(document.createElement("form"),
			{ method: "post", action: url, target: frame.name, enctype: "text/plain" });
		form.append(Object.assign(document.createElement("input"), { name: body, value: "" }));
		document.body.append(form);
		const loaded = new Promise((done) => { frame.onload = done; });
		form.submit();
		await loaded;
	}
	return sent.length;
};
</script><body>`

var apiServer = regexp.MustCompile(`of (http://127\.0\.0\.1:\d+)\.`)

// A page of another origin changes nothing, whatever it sends to the ports of the program.
func TestCrossSite_ChangesNothing(t *testing.T) {
	t.Parallel()
	p := start(t, "run", "--listen", "127.0.0.1:0", "--serve", "127.0.0.1:0", "--rate", "0.001",
		"--objects", "3")
	server := apiServer.FindStringSubmatch(p.stderr.String())
	require.NotEmpty(t, server, p.stderr.String())
	f := p.frames()
	f.until("all objects", func(f lab.Frame) bool { return f.Store.Objects == 3 })

	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, hostilePage)
	}))
	t.Cleanup(site.Close)
	const command = `{"do":"delete","key":"default/settings-1"}`
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"foreign"}}`
	targets := []string{
		target(p.url+"/lab/command", command),
		target(p.url+"/lab/command", `{"do":"mode","mode":"pause"}`),
		target("http://"+p.port()+"/debug/informers", command),
		target(server[1]+"/api/v1/namespaces/default/configmaps", object),
		target(server[1]+"/api/v1/namespaces/default/configmaps/settings-1", object),
	}
	hostile := openDocument(t, site.URL, desktop)
	attack := "attack([" + strings.Join(targets, ",") + "])"
	sent := evaluate[int](hostile, attack)
	require.Equal(t, 3*len(targets), sent)
	frame := strings.Replace(hostilePage, "<body>",
		"<body><script>"+attack+".then((n) => parent.postMessage(n, '*'));</script>", 1)
	sent = evaluate[int](hostile, `new Promise((done) => {
		addEventListener("message", ({ data }) => done(data));
		const frame = document.createElement("iframe");
		frame.sandbox = "allow-scripts allow-forms";
		frame.srcdoc = `+quoted(frame)+`;
		document.body.append(frame);
	})`)
	require.Equal(t, 3*len(targets), sent)
	hostile.forget() // the browser reports each refusal

	require.Equal(t, lab.Run, f.now().Mode)
	page := open(t, p.url, desktop)
	page.click(button(" ")) // the page's own commands come after those of the attack
	after := f.until("the page pauses", func(f lab.Frame) bool { return f.Mode == lab.Pause })
	var keys []string
	for _, item := range after.Store.Items {
		keys = append(keys, item.Key)
	}
	require.ElementsMatch(t,
		[]string{"default/settings-1", "default/settings-2", "default/settings-3"}, keys)
}

// target is an argument of attack.
func target(url, body string) string {
	return "{url:" + quoted(url) + ",body:" + quoted(body) + "}"
}
