// SPDX-License-Identifier: Apache-2.0

package narrate

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a test with recorded output.
type recorder struct {
	testing.TB
	name string
	out  *strings.Builder
}

func (r recorder) Name() string      { return r.name }
func (r recorder) Output() io.Writer { return r.out }

// run returns the output of a test that logs events.
func run(t *testing.T, name string, play func(log *Log)) string {
	r := recorder{t, name, &strings.Builder{}}
	log := newLog(r)
	play(log)
	log.end()
	return r.out.String()
}

func TestLog_PrintsAStaircase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := run(t, "staircase", func(log *Log) {
			log.Event("server", "create %s", "a")
			time.Sleep(time.Minute)
			log.Event("worker", "Get a")
			time.Sleep(time.Minute)
			log.Event("worker", "Get a")
		})
		assert.Equal(t, ""+
			"      0s server           create a\n"+
			"    1m0s         worker   Get a  (2 times, until 2m0s)\n", got)
	})
}

// The second implementation's events are printed if they differ from the first's.
func TestLog_ComparesImplementations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := func(events ...string) func(*Log) {
			return func(log *Log) {
				for _, e := range events {
					log.Event("server", "%s", e)
				}
			}
		}
		assert.Contains(t, run(t, "S/impl=ours", log("a", "b")), "b")
		assert.Equal(t, "         the same events as impl=ours\n",
			run(t, "S/impl=client-go", log("a", "b")))
		assert.Equal(t, "         the same events as impl=ours, at other times\n",
			run(t, "S/impl=client-go", func(l *Log) {
				time.Sleep(time.Minute)
				log("a", "b")(l)
			}))
		assert.Contains(t, run(t, "S/impl=client-go", log("b", "a")), "server           b")
		assert.Contains(t, run(t, "S/impl=third", log("b", "a")), "as impl=client-go")
		assert.Contains(t, run(t, "other/impl=client-go", log("a", "b")), "b")
		assert.Contains(t, run(t, "S/impl=ours", log("again")), "again")
	})
}

func TestLog_IsLimited(t *testing.T) {
	many := func(log *Log) {
		for i := range 100 {
			log.Event("server", "%d of %p", i, log)
		}
	}
	lines := strings.Split(run(t, "many/impl=ours", many), "\n")
	assert.Len(t, lines, maxLines+2)
	assert.Equal(t, fmt.Sprintf("         and %d more events", 100-maxLines), lines[maxLines])
	assert.Equal(t, "         the events of impl=ours, in another order\n",
		run(t, "many/impl=b", many))
}

func TestLog_NilPrintsNothing(t *testing.T) {
	var log *Log
	log.Event("server", "nothing")
}

// The selected examples are printed with their output, the selected tests with their comments.
func TestPrintSelected(t *testing.T) {
	for pattern, want := range map[string]string{
		"ExampleReadList/x": "ExampleReadList printed:\n" +
			"    item a\n    item b\n    10245 <nil>\n",
		"TestReadList_BufferIsOfOneItem": "TestReadList_BufferIsOfOneItem shows:\n" +
			"    A list is not kept",
		"Nothing": "",
	} {
		var b strings.Builder
		require.NoError(t, printSelected(&b, pattern, "../../../reflector/wire"))
		assert.True(t, strings.HasPrefix(b.String(), want), b.String())
	}
}
