// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Open connects a page: it returns hello and the frames that follow, both as JSON, until the Lab is
// closed. A page that falls behind loses frames, and each frame is complete. Call leave when the
// page closes. Some time after the last one, the lesson ends.
func (l *Lab) Open() (hello []byte, frames <-chan []byte, leave func(), err error) {
	hello, err = json.Marshal(l.hello)
	if err != nil {
		return nil, nil, nil, err
	}
	frames, stop := l.stream.open()
	closed := l.openPage()
	return hello, frames, func() {
		closed()
		stop()
	}, nil
}

// reloadTime is how long a lesson continues without a page: its reader may load the page again.
const reloadTime = 10 * time.Second

// openPage counts a page until it is closed. Some time after the last one, the lesson ends.
func (l *Lab) openPage() (closed func()) {
	count := func(by int) (pages int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pages += by
		return l.pages
	}
	count(+1)
	return func() {
		if count(-1) > 0 {
			return
		}
		time.AfterFunc(reloadTime, func() {
			if count(0) == 0 {
				_ = l.lesson("", 0, false)
			}
		})
	}
}

// Command runs a command of a page, which is JSON. The error is for its reader.
func (l *Lab) Command(message []byte) error {
	var c command
	if err := json.Unmarshal(message, &c); err != nil {
		return fmt.Errorf("read command: %w", err)
	}
	if !slices.Contains(reads, c.Do) && c.Do != "index" {
		l.player.goOn() // it concerns what happens next
	}
	if err := l.run(c); err != nil {
		return err
	}
	l.player.act(c)
	return nil
}

// maxFound is the number of keys that a search finds.
const maxFound = 20

// Find returns the first keys of the store, in order, that contain a text.
func (l *Lab) Find(text string) []string {
	found := []string{}
	objects := l.known()
	if objects == nil {
		return found
	}
	keys := objects.ListKeys()
	slices.Sort(keys)
	for _, key := range keys {
		if len(found) < maxFound && strings.Contains(key, text) {
			found = append(found, key)
		}
	}
	return found
}

// Lessons returns the lessons with their texts as JSON: see protocol.md.
func Lessons() []byte { return slices.Clone(lessonsFile) }
