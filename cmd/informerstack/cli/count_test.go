// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestThousands(t *testing.T) {
	assert.Equal(t, []string{"1", "999", "1,000", "44,998", "1,234,567"}, []string{
		thousands(1), thousands(999), thousands(1000), thousands(44_998), thousands(1_234_567)})
}
