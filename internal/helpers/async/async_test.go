// SPDX-License-Identifier: Apache-2.0

package async

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCall_DeliversEachEnd(t *testing.T) {
	failure := errors.New("failure")
	value, err := (<-Call(func() (int, error) { return 7, failure })).Unpack()
	assert.Equal(t, 7, value)
	assert.Equal(t, failure, err)

	_, err = (<-Call(func() (int, error) { runtime.Goexit(); return 0, nil })).Unpack()
	assert.Equal(t, ErrGoexit, err)

	panicked := <-Call(func() (int, error) { panic("broken") })
	assert.PanicsWithValue(t, "broken", func() { _, _ = panicked.Unpack() })
}
