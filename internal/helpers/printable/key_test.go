// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

type (
	plainKey struct {
		Namespace, Name string
		n               [2]int
	}
	namedKey  struct{ namespace, name string }
	numberKey int
	secretKey struct{ password string }
	lockedKey struct {
		sync.Mutex
		name string
	}
	mixedKey struct {
		Name   string
		secret *secretKey
		any    any
	}
)

func (k namedKey) String() string { return k.namespace + "/" + k.name }

func (k numberKey) String() string { return fmt.Sprint("number ", int(k)) }

func (k *secretKey) String() string { return k.password }

func (k *lockedKey) String() string {
	k.Lock()
	defer k.Unlock()
	return k.name
}

// Keys of plain values are printed as %v does.
func TestKey_OfPlainValues(t *testing.T) {
	for _, key := range []any{
		"default/a", "", 7, 1.5, true, numberKey(7), namedKey{"default", "a"},
		plainKey{"default", "a", [2]int{1, 2}}, struct{ key namedKey }{namedKey{"default", "a"}},
		[2]namedKey{{"default", "a"}}, nil,
	} {
		require.Equal(t, fmt.Sprint(key), Key(key))
	}
	require.Len(t, []rune(Key(namedKey{"default", strings.Repeat("x", 1<<20)})), MaxRunes)
}

// The target of a pointer has values, and changes, perhaps under a lock.
func TestKey_FollowsNoPointer(t *testing.T) {
	locked := &lockedKey{name: "hunter2"}
	locked.Lock()
	secret := &secretKey{"hunter2"}
	for want, key := range map[string]any{
		`\*printable\.secretKey\(0x\w+\)`: secret,
		`\*printable\.lockedKey\(0x\w+\)`: locked,
		`\*printable\.secretKey\(0x0\)`:   (*secretKey)(nil),
		`chan int\(0x\w+\)`:               make(chan int),
		`\{a \*printable\.secretKey\(0x\w+\) \*printable\.lockedKey\(0x\w+\)\}`: mixedKey{
			"a", secret, locked},
		`\{a \*printable\.secretKey\(0x0\) <nil>\}`: mixedKey{Name: "a"},
		`\{b \*printable\.secretKey\(0x0\) 7\}`:     mixedKey{Name: "b", any: 7},
	} {
		require.Regexp(t, regexp.MustCompile("^"+want+"$"), Key(key))
		require.Equal(t, Key(key), Key(key))
	}
}

func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"default/a": "default/a", "a": "a", "": "", "/a": "a", "{ a}": "a",
		"{default a}": "default/a", "{default a true}": "{default a true}",
		"{default {a}}": "{default {a}}", "{a/b c}": "{a/b c}", "{default }": "{default }",
		"{}": "{}", "{": "{",
	} {
		require.Equal(t, want, Canonical(text), text)
	}
}
