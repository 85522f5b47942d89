// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Where there is nothing to see, the program explains why.
func TestRun_ExplainsWhyThereIsNothing(t *testing.T) {
	server, kubeconfig := foreign(t)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, server.Create(labelled(name)))
	}
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--objects", "0", "--rate", "0"},
			"There are no configmaps there yet. Lines follow when one is created."},
		{[]string{"--namespace", "kube-system"}, "There are no configmaps in namespace " +
			"kube-system: the embedded server's are in namespace default."},
		{[]string{"--resource", "pods"}, "The embedded server changes only configmaps."},
		{[]string{"--kubeconfig", kubeconfig, "--selector", "app=web"},
			"No object matches the selector. Without it there are at least 3."},
		{[]string{"--kubeconfig", kubeconfig, "--field-selector", "metadata.name=x"},
			"No object matches the selector."},
		{[]string{"--kubeconfig", kubeconfig, "--namespace", "kube-system"},
			"There are no configmaps in namespace kube-system yet."},
	} {
		p := start(t, append([]string{"run"}, test.args...)...)
		p.Prints(t, test.says)
		p.Stops(t)
		assert.NotContains(t, p.Stderr.String(), "--key")
	}
}
