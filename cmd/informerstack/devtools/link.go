// SPDX-License-Identifier: Apache-2.0

package devtools

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// LinkVariable is the environment variable with the link of a program. Other users of the machine
// can read the arguments of a command, but not its environment.
const LinkVariable = "INFORMERSTACK_LINK"

// maxLinkBytes bounds what is read of the standard input.
const maxLinkBytes = 4096

// linkPrefix is what a program prints before its link: the whole line may be given.
const linkPrefix = "devtools: "

// token matches a link with a token of package linktoken.
var token = regexp.MustCompile(`//[^/]*/[A-Z2-7]{26}(/|$)`)

// linkOf returns the link to the program: the argument, the first line of stdin if the argument is
// "-", or the variable without an argument. It warns if the argument has a token.
func linkOf(args []string, stdin io.Reader, stderr io.Writer) (string, error) {
	switch {
	case len(args) > 1:
		return "", errors.New("want one LINK (see informerstack devtools --help)")
	case len(args) == 0 && os.Getenv(LinkVariable) == "":
		return "", fmt.Errorf("want a LINK, or the variable %s with the link that the program "+
			"has printed (see informerstack devtools --help)", LinkVariable)
	case len(args) == 0:
		return os.Getenv(LinkVariable), nil
	case args[0] == "-":
		line, err := bufio.NewReader(io.LimitReader(stdin, maxLinkBytes)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the link from the standard input: %w", err)
		}
		line = strings.TrimPrefix(strings.TrimSpace(line), linkPrefix)
		if line == "" {
			return "", errors.New("the first line of the standard input has no link")
		}
		return line, nil
	}
	if token.MatchString(args[0]) {
		fmt.Fprintf(stderr, "Every user of this machine can read the token of the link in the "+
			"arguments of this command: use the variable %s, or - and the standard input.\n",
			LinkVariable)
	}
	return args[0], nil
}
