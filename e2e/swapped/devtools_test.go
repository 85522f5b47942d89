// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"bufio"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program on client-go, which is not changed, says under swap where each of its keys is.
func TestSwapped_Devtools(t *testing.T) {
	informerstack, err := buildInformerstack()
	require.NoError(t, err)
	goWork := swap(t, "clientgo", "--devtools", "127.0.0.1:0")
	worker := exec.CommandContext(t.Context(), compile(t, "clientgo", goWork, "./worker"))
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
			append([]string{"devtools", link}, args...)...)
		answer, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", answer)
		return string(answer)
	}
	const stored = `informer SharedIndexInformer \*v1.ConfigMap has default/\w+ at ` +
		`resourceVersion \d+, its handlers were called`
	for key, want := range map[string]string{
		"default/hangs": `a worker of queue settings has had default/hangs for \S+, and has not ` +
			`called Done\n  ` + stored + `\n  its goroutine: select \(no cases\)\n` +
			`    main.reconcile main.go:\d+\n    main.work main.go:\d+\n` +
			`    created by main.main in goroutine 1 main.go:\d+\n`,
		"default/fails": `default/fails joins queue settings in 59m\S+, at \S+, after 1 failure\n` +
			`  ` + stored + `\n`,
		"default/filtered": stored + `, and no queue has the key: it was reconciled since it ` +
			`changed, or no handler has added it\n`,
		"default/missing": `no informer has default/missing \(SharedIndexInformer ` +
			`\*v1.ConfigMap\): it does not exist, or a selector or a namespace of the informer ` +
			`leaves it out\n`,
	} {
		assert.Eventually(t, func() bool {
			return regexp.MustCompile("^" + want + "$").MatchString(ask("--why", key))
		}, time.Minute, 100*time.Millisecond, key)
	}
	page := ask()
	assert.Contains(t, page, "informer SharedIndexInformer *v1.ConfigMap: synced, 3 objects\n")
	assert.Contains(t, page, "queue settings\n  ready: 0\n  processing: 1\n    default/hangs\n")
}
