// SPDX-License-Identifier: Apache-2.0

package listwatch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestIsQuestion(t *testing.T) {
	assert.True(t, IsQuestion(Question()))
	for _, list := range []metav1.ListOptions{
		{}, {Limit: 2}, {Limit: 1, ResourceVersion: "0"}, {Limit: 1, Continue: "next"},
	} {
		assert.False(t, IsQuestion(list), "%+v", list)
	}
}

// Any circle is found within a few turns, wherever it begins, and no list of different tokens is
// taken for one.
func TestContinueTokens(t *testing.T) {
	for before := range 20 {
		for length := 1; length < 20; length++ {
			var tokens ContinueTokens
			count := 0
			for i := 0; ; i++ {
				count++
				if i >= before {
					i = before + (i-before)%length
				}
				if tokens.Repeat(fmt.Sprint(i)) {
					break
				}
			}
			require.Greater(t, count, before+length, "nothing was repeated yet")
			require.LessOrEqual(t, count, 3*(before+length)+1)
		}
	}
	var tokens ContinueTokens
	for i := range 10_000 {
		require.False(t, tokens.Repeat(fmt.Sprint(i)))
	}
	require.False(t, tokens.Repeat(""))
}

func TestIsUnreachable(t *testing.T) {
	assert.True(t, IsUnreachable(watch.NewEmptyWatch()))
	assert.False(t, IsUnreachable(watch.NewFake()))
	assert.False(t, IsUnreachable(nil))
}

// waiting is a watch of a decorator that has asked no server, unless it is false.
type waiting bool

func (w waiting) ResultChan() <-chan watch.Event { return nil }
func (w waiting) Stop()                          {}
func (w waiting) IsUnanswered() bool             { return bool(w) }

func TestIsUnanswered(t *testing.T) {
	for _, w := range []watch.Interface{watch.NewEmptyWatch(), waiting(true)} {
		assert.True(t, IsUnanswered(w))
	}
	for _, w := range []watch.Interface{watch.NewFake(), waiting(false), nil} {
		assert.False(t, IsUnanswered(w))
	}
}
