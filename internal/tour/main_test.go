// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"LateHandlerGetsReplay": "Late handler gets replay",
		"AFailureIsRetried":     "A failure is retried",
		"RealFIFOKeepsOrder":    "Real FIFO keeps order",
	} {
		assert.Equal(t, want, words(name))
	}
}

// Every piece has stories and a synopsis, and begins with an example or a story.
func TestRead(t *testing.T) {
	t.Chdir("../..")
	all, err := readAll()
	require.NoError(t, err)
	first := map[string]story{}
	for _, s := range all {
		assert.NotEmpty(t, s.shows, s.name)
		assert.NotZero(t, s.line, s.name)
		assert.Contains(t, s.synopsis, "Package "+s.piece)
		if _, ok := first[s.piece]; !ok {
			first[s.piece] = s
		}
	}
	for _, piece := range pieces {
		assert.Equal(t, piece+"/example_test.go", first[piece].file)
		assert.NotEmpty(t, first[piece].output, first[piece].name)
	}
	_, err = read("nowhere")
	assert.ErrorContains(t, err, "no stories in nowhere")
}

func TestChoose(t *testing.T) {
	all := []story{
		{piece: "reflector", name: "ExampleReflector"}, {piece: "informer", name: "TestStory_AB"},
	}
	for name, want := range map[string]string{
		"reflector": "ExampleReflector", "ExampleR": "ExampleReflector", "_ab": "TestStory_AB",
	} {
		chosen, err := choose(all, []string{name})
		require.NoError(t, err)
		require.Len(t, chosen, 1, name)
		assert.Equal(t, want, chosen[0].name)
	}
	_, err := choose(all, []string{"nothing"})
	assert.ErrorContains(t, err, `no piece and no story matches "nothing"; the pieces are trace,`)
}

// take makes a tour without running tests, and returns the names of the shown stories.
func take(t *testing.T, in *bufio.Scanner, names ...string) []string {
	t.Chdir("../..")
	var out strings.Builder
	pass := func(_ string, stories []story) (map[string]result, error) {
		results := map[string]result{}
		for _, s := range stories {
			results[s.name] = result{outcome: "pass"}
		}
		return results, nil
	}
	tour := tour{in: in, out: &out, run: pass}
	require.NoError(t, tour.start(names))
	var shown []string
	for _, m := range regexp.MustCompile(`\n\d+/\d+ \S+:\d+ (\S+)`).FindAllStringSubmatch(
		out.String(), -1) {
		shown = append(shown, m[1])
	}
	return shown
}

func TestTour_WithoutATerminalShowsAll(t *testing.T) {
	shown := take(t, nil, "workqueue")
	assert.Greater(t, len(shown), 20)
	assert.Equal(t, "Example", shown[0])
}

// On a terminal, Enter continues, a name selects, and q ends.
func TestTour_OneAtATime(t *testing.T) {
	in := bufio.NewScanner(strings.NewReader("\nunknown\nforgetisnodone\n\nq\n"))
	shown := take(t, in, "workqueue")
	assert.Equal(t, []string{"Example", "ExampleTyped_Done", "TestStory_ForgetIsNoDone",
		"TestStory_NeitherDoneNorForget"}, shown)
}

func TestTour_AFailureIsReported(t *testing.T) {
	t.Chdir("../..")
	tour := tour{out: &strings.Builder{}, run: func(string, []story) (map[string]result, error) {
		return map[string]result{}, nil
	}}
	assert.ErrorContains(t, tour.start([]string{"ForgetIsNoDone"}), "a story failed")
}

func TestParse(t *testing.T) {
	results := parse(strings.NewReader(`
{"Action":"output","Test":"TestStory_A","Output":"=== RUN   TestStory_A\n"}
{"Action":"output","Test":"TestStory_A/impl=ours","Output":"=== RUN   TestStory_A/impl=ours\n"}
{"Action":"output","Test":"TestStory_A/impl=ours","Output":"          0s server  a\n"}
{"Action":"output","Test":"TestStory_A/impl=ours","Output":"          1s server  b\n"}
{"Action":"output","Test":"TestStory_A/impl=b","Output":"             the same events\n"}
{"Action":"output","Test":"TestStory_A","Output":"    --- PASS: TestStory_A/impl=ours (0.00s)\n"}
{"Action":"fail","Test":"TestStory_A/impl=b"}
{"Action":"pass","Test":"TestStory_A"}
{"Action":"output","Output":"PASS\n"}
`))
	assert.Equal(t, map[string]result{"TestStory_A": {"pass", []string{
		"impl=ours:", "      0s server  a", "      1s server  b", "impl=b:",
		"         the same events",
	}}}, results)
}
