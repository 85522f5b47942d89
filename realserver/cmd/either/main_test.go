// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outcome parses the output of a run.
func outcome(t *testing.T, took time.Duration, lines ...string) results {
	r, err := parse(strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	r.took = took
	return r
}

func TestReport(t *testing.T) {
	memory := outcome(t, time.Second,
		`{"Action":"start","Package":"p"}`,
		`{"Action":"attr","Package":"p","Test":"TestA","Key":"answer","Value":"PUT /a\t200"}`,
		`{"Action":"attr","Package":"p","Test":"TestA","Key":"answer","Value":"GET /a\t200"}`,
		`{"Action":"attr","Package":"p","Test":"TestA","Key":"answer","Value":"GET /b\t200"}`,
		`{"Action":"attr","Package":"p","Test":"TestA","Key":"other","Value":"GET /a\t500"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"pass","Package":"p","Test":"TestB"}`,
		`{"Action":"fail","Package":"p","Test":"TestC"}`,
		`{"Action":"fail","Package":"p"}`,
		`{"Action":"pass","Package":"q","Test":"TestA"}`,
		`{"Action":"pass","Package":"q"}`)
	onReal := outcome(t, 2*time.Second,
		`{"Action":"attr","Package":"p","Test":"TestA","Key":"answer","Value":"PUT /a\t200"}`,
		`{"Action":"attr","Package":"p","Test":"TestA","Key":"answer","Value":"PUT /a\t422 too big"}`,
		`{"Action":"attr","Package":"p","Test":"TestA","Key":"answer","Value":"GET /a\t200"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"fail","Package":"p","Test":"TestB"}`,
		`{"Action":"run","Package":"p","Test":"TestC"}`,
		`{"Action":"fail","Package":"p"}`,
		`{"Action":"fail","Package":"q"}`)
	r := &report{memory, onReal}
	assert.True(t, r.testsDiffer())
	assert.Equal(t, `On both: 1 tests pass, 0 fail, 0 are skipped. apitest took 1.0s, a real server 2.0s, with compiling.

Tests that end differently:

p TestB
  apitest      pass
  real server  fail
p TestC
  apitest      fail
  real server  did not end
q
  apitest      pass
  real server  fail
q TestA
  apitest      pass
  real server  did not run

Requests of both runs with different answers (a conflict may be chance):

p TestA: PUT /a
  apitest      200
  real server  200; 422 too big
`, r.String())
	same := &report{memory, memory}
	assert.False(t, same.testsDiffer())
	assert.Equal(t, "On both: 3 tests pass, 1 fail, 0 are skipped. apitest took 1.0s, "+
		"a real server 1.0s, with compiling.\n", same.String())
}

// The tests of package either run on both servers, and one of them differs.
func TestEither(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run([]string{"-run", "TestStart_OnBoth|TestDiffers", "../../..."}, &stdout, &stderr)
	require.Equal(t, 1, code, "%s%s", &stdout, &stderr)
	text := stdout.String()
	assert.Contains(t, text, "On both: 1 tests pass, 0 fail, 0 are skipped.")
	assert.Contains(t, text, "\nTests that end differently:\n\n"+
		eitherPath+" TestDiffers\n  apitest      fail\n  real server  pass\n")
	assert.Contains(t, text, eitherPath+" TestDiffers: GET /metrics\n"+
		"  apitest      404 404 page not found\n  real server  200\n")
	assert.NotContains(t, text, "/configmaps", "the answers are equal")

	stdout.Reset()
	assert.Zero(t, run([]string{"-run", "TestStart_OnBoth", "../../either"}, &stdout, &stderr))
}

func TestEither_Errors(t *testing.T) {
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-h"}, 0, "Usage: either"},
		{[]string{"-x"}, 2, "not defined: -x"},
		{[]string{"."}, 2, `no package of ["."] has tests that use ` + eitherPath},
		{[]string{"./missing"}, 2, "missing: directory not found"},
		{[]string{"-run", "TestNone$", "../../either"}, 2, "on apitest: no test has run"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, test.code, run(test.args, &stdout, &stderr))
		assert.Contains(t, stderr.String(), test.says)
	}
}
