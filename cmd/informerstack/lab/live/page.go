// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"encoding/json"
	"syscall/js"

	"example.com/informerstack/cmd/informerstack/lab"
)

// The messages to the page.
type (
	greeting struct {
		Hello json.RawMessage `json:"hello"`
	}
	teaching struct {
		Lessons json.RawMessage `json:"lessons"`
	}
	picture struct {
		Frame json.RawMessage `json:"frame"`
	}
	failure struct {
		Failed string `json:"failed"`
	}
	answer struct {
		N     int      `json:"n"` // of the request
		Error string   `json:"error,omitempty"`
		Keys  []string `json:"keys,omitempty"`
	}
)

// request is a message of the page: a command, or the text of a search.
type request struct {
	N       int             `json:"n"`
	Command json.RawMessage `json:"command"`
	Find    string          `json:"find"`
}

// connect greets the page, and sends it the frames and the answers to its requests from now on.
func connect(l *lab.Lab) error {
	hello, frames, _, err := l.Open() // until the page closes, which ends this program
	if err != nil {
		return err
	}
	js.Global().Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var r request
		if err := json.Unmarshal([]byte(args[0].Get("data").String()), &r); err == nil {
			go func() { send(r.answer(l)) }() // a callback must not wait
		}
		return nil
	}))
	send(greeting{hello})
	send(teaching{lab.Lessons()})
	go func() {
		for frame := range frames {
			send(picture{frame})
		}
	}()
	return nil
}

func (r request) answer(l *lab.Lab) answer {
	if len(r.Command) == 0 {
		return answer{N: r.N, Keys: l.Find(r.Find)}
	}
	if err := l.Command(r.Command); err != nil {
		return answer{N: r.N, Error: err.Error()}
	}
	return answer{N: r.N}
}

func send(message any) {
	encoded, err := json.Marshal(message)
	if err != nil {
		encoded, _ = json.Marshal(failure{err.Error()}) // strings can be encoded
	}
	js.Global().Call("postMessage", string(encoded))
}
