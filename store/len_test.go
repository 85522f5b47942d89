// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLen_CountsObjects(t *testing.T) {
	s := NewIndexer(func(obj any) (string, error) { return obj.(string), nil }, Indexers{})
	count := func() int { return s.(interface{ Len() int }).Len() }
	assert.Zero(t, count())
	require.NoError(t, s.Add("a"))
	require.NoError(t, s.Add("a"))
	require.NoError(t, s.Add("b"))
	assert.Equal(t, 2, count())
	require.NoError(t, s.Replace([]any{"c", "d", "e"}, "7"))
	assert.Equal(t, 3, count())
	require.NoError(t, s.Delete("c"))
	assert.Equal(t, 2, count())
}
