// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Folders with different content that move to one place at the same time all succeed, and one of
// them stays, complete.
func TestFolder_MovesBesideOthers(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, FolderName)
	commit := func(content string) {
		f := &folder{}
		defer f.abandon()
		if !assert.NoError(t, f.make(place)) {
			return
		}
		for _, name := range []string{workFile, "other"} {
			assert.NoError(t, os.WriteFile(filepath.Join(f.new, name), []byte(content), 0o644))
		}
		assert.NoError(t, f.commit())
	}
	var commits sync.WaitGroup
	for committer := range 8 {
		commits.Go(func() {
			for n := range 50 {
				commit(strconv.Itoa(committer*50 + n))
			}
		})
	}
	commits.Wait()
	var contents []string
	for _, name := range []string{workFile, "other"} {
		text, err := os.ReadFile(filepath.Join(place, name))
		require.NoError(t, err)
		contents = append(contents, string(text))
	}
	assert.Equal(t, contents[0], contents[1])
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

// An overlay is made while another swap takes the place of the folder that an earlier one wrote.
func TestFolder_OverlayBesideOthers(t *testing.T) {
	place := filepath.Join(t.TempDir(), FolderName)
	f := &folder{}
	require.NoError(t, f.make(place))
	defer f.abandon()
	stop := make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			f := &folder{}
			if !assert.NoError(t, f.make(place)) {
				return
			}
			for i := range 20 {
				dir := filepath.Join(f.new, copyName, strconv.Itoa(i))
				assert.NoError(t, os.MkdirAll(dir, 0o755))
				assert.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), nil, 0o644))
			}
			assert.NoError(t, f.commit())
			f.abandon()
		}
	})
	for range 100 {
		_, err := f.overlay()
		assert.NoError(t, err)
	}
	close(stop)
	other.Wait()
}
