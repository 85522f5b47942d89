// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"bufio"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
)

// A program on client-go, which is not changed, says under swap where each of its keys is.
func TestSwapped_Devtools(t *testing.T) {
	informerstack, err := buildInformerstack()
	require.NoError(t, err)
	goWork := swap(t, "clientgo", "--devtools", "127.0.0.1:0")
	api := apitest.NewServer(apitest.Options{})
	require.NoError(t, api.Start())
	defer api.Close()
	server := httptest.NewServer(api) // of HTTP/1
	defer server.Close()
	worker := exec.CommandContext(t.Context(), compile(t, "clientgo", goWork, "./worker"),
		server.URL)
	worker.Env = environ("off", "INFORMERSTACK_DEVTOOLS=127.0.0.1:0")
	stderr, err := worker.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, worker.Start())
	defer func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	}()
	line, err := bufio.NewReader(stderr).ReadString('\n')
	require.NoError(t, err)
	_, link, _ := strings.Cut(strings.TrimSpace(line), "devtools: ")

	ask := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), informerstack,
			append([]string{"devtools"}, args...)...)
		cmd.Env = append(os.Environ(), "INFORMERSTACK_LINK="+link)
		answer, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", answer)
		return string(answer)
	}
	const (
		other = `SharedIndexInformer \*v1.Service selects services namespace=team labels=app=web`

		kind   = `SharedIndexInformer \*v1.ConfigMap`
		stored = `informer ` + kind + ` has default/\w+ at resourceVersion \d+, its handlers ` +
			`were called`
		update = `update of default/\w+ from resourceVersion \d+ to \d+ ` +
			`\(changed: .data.change\), informer ` + kind + `, handler main.main.func\d`
	)
	written := strings.Replace(update, `\(changed`, `by \w+ \(changed`, 1)
	for key, want := range map[string]string{
		"default/hangs": `a worker of queue settings has had default/hangs for \S+, and has not ` +
			`called Done\n  ` + stored + `\n  these informers have no object with that key: ` +
			other + `\n  its goroutine: select \(no cases\)\n` +
			`    main.reconcile main.go:\d+\n    main.work main.go:\d+\n` +
			`    created by main.main in goroutine 1 main.go:\d+\n`,
		"default/fails": `default/fails joins queue settings in 59m\S+, at \S+, after 1 call of ` +
			`AddRateLimited\n` +
			`  ` + stored + `\n`,
		"default/filtered": `a handler was called \S+ ago, and no Add was seen within the call: ` +
			update + `\n`,
		"default/works": `queue settings reconciled default/works \S+ ago, and it has not ` +
			`changed since: it ended with Forget in \S+, because of: ` + update + `\n`,
		"default/missing": `no informer has default/missing \(` + kind + `, ` + other + `\): it does not exist, ` +
			`has not arrived yet, (or )?is of a kind without an informer[^\n]*\n`,
	} {
		assert.Eventually(t, func() bool {
			return regexp.MustCompile("^" + want).MatchString(ask("--why", key))
		}, time.Minute, 100*time.Millisecond, key)
	}
	page := ""
	for _, want := range []string{
		`(?m)^finding: a worker of queue settings has had default/hangs for \S+$`,
		`(?m)^finding: queue settings reconciles default/loops in a loop: 40 of the ` +
			`last 40 reconciles followed an update during the one before, and this program, or ` +
			`another of its name, wrote an object with that key then: ` + written + `$`,
		`(?m)^informer ` + kind + `: synced, 5 objects\b.*$`,
		`(?m)^informer SharedIndexInformer \*v1.Service: synced, 0 objects\b.*\n` +
			`  selects services namespace=team labels=app=web$`,
		`(?m)^queue settings\n  ready: \d+\n  processing: \d\n    default/hangs$`,
		`(?m)^  informer ` + kind + ` -> handler main.main.func\d -> queue settings: ` +
			`\d+ keys? added$`,
	} {
		assert.Eventually(t, func() bool {
			page = ask()
			return regexp.MustCompile(want).MatchString(page)
		}, time.Minute, 100*time.Millisecond, want)
	}
	if t.Failed() {
		t.Log(page)
	}
}
