// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/reflector"
)

// Without a name, a reflector is called after the line that made it.
func TestNew_NameIsTheCaller(t *testing.T) {
	name := reflector.New(nil, nil, nil, reflector.Options{}).Name()
	require.Regexp(t, `reflector/callsite_test\.go:\d+$`, name)
}
