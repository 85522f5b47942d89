// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/cli/clitest"
)

func TestUnknownCommand(t *testing.T) {
	p := clitest.Start(t, commands(), "walk")
	p.Exits(t, cli.Usage)
	assert.Contains(t, p.Stderr.String(), `unknown command "walk"`)
}
