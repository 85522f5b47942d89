// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

// child is a subject in a process of its own. One goroutine may use it.
type child struct {
	name    string
	names   int
	command *exec.Cmd
	input   io.Closer // its end ends the process
	url     string
}

// startChild starts a subject, whose program does not run yet.
func startChild(program, server string, names int) (*child, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(subjectConfig{Program: program, Server: server, Names: names})
	if err != nil {
		return nil, err
	}
	command := exec.Command(executable)
	command.Env = append(os.Environ(), subjectVariable+"="+string(config))
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	c := &child{name: program, names: names, command: command, input: input}
	address, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		c.close()
		return nil, fmt.Errorf("start %s: read its address: %w", program, err)
	}
	c.url = "http://" + strings.TrimSpace(address)
	return c, nil
}

// close ends the process.
func (c *child) close() {
	_ = c.input.Close()
	_ = c.command.Wait() // its errors are on the standard error
}

// ask sends a request and returns the answer.
func (c *child) ask(path string) ([]byte, error) {
	answer, err := http.Get(c.url + path)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.name, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.name, err)
	}
	return body, nil
}

// sample returns a sample; path may ask for a garbage collection before it.
func (c *child) sample(path string) (sample, error) {
	var s sample
	body, err := c.ask(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("read the sample of %s: %w", c.name, err)
	}
	return s, nil
}

// marks returns the marks of each handler.
func (c *child) marks() ([][]mark, error) {
	body, err := c.ask("/marks")
	if err != nil {
		return nil, err
	}
	if want := handlerCount * c.names * 8; len(body) != want {
		return nil, fmt.Errorf("the marks of %s are %d bytes, not %d", c.name, len(body), want)
	}
	all := make([][]mark, handlerCount)
	for i := range all {
		all[i] = make([]mark, c.names)
		for n := range all[i] {
			all[i][n] = mark(binary.LittleEndian.Uint64(body))
			body = body[8:]
		}
	}
	return all, nil
}
