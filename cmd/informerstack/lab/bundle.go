// SPDX-License-Identifier: Apache-2.0

//go:build !js

package lab

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
)

// A browser does not load modules from files. So a page without a program has the page's modules as
// one script, in which each module is a function that returns what it exports.
var (
	importLine  = regexp.MustCompile(`(?m)^import (?:(\w+)|\{ ([^}]+) \}) from "\./([^"]+)";$`)
	exportList  = regexp.MustCompile(`\bexport ?\{([^}]+)\}`)
	exported    = regexp.MustCompile(`(?m)^export ((?:async )?function|class|const) (\w+)`)
	exportValue = regexp.MustCompile(`\bexport default `)
	moduleWord  = regexp.MustCompile(`(?m)^(?:import|export)\b`)
	sourceMap   = regexp.MustCompile(`\n//# sourceMappingURL=.*`)
)

// script returns the page's modules as one script that needs no other file.
var script = sync.OnceValues(func() (string, error) {
	b := bundle{done: map[string]bool{}}
	b.WriteString("// SPDX-License-Identifier: Apache-2.0\n" +
		"\"use strict\";\n\nconst modules = {};\n")
	err := b.add("app.js")
	return b.String(), err
})

// bundle is the script. A module follows those that it imports.
type bundle struct {
	strings.Builder
	done map[string]bool // by name; false while its imports are added
}

// add adds a module, and before it those that it imports.
func (b *bundle) add(name string) error {
	if done, begun := b.done[name]; begun {
		if !done {
			return fmt.Errorf("module %s imports itself", name)
		}
		return nil
	}
	b.done[name] = false
	source, err := fs.ReadFile(assets, name)
	if err != nil {
		return err
	}
	code := sourceMap.ReplaceAllString(string(source), "")
	for _, line := range importLine.FindAllStringSubmatch(code, -1) {
		if err := b.add(path.Join(path.Dir(name), line[3])); err != nil {
			return err
		}
	}
	code, err = asFunction(name, code)
	b.WriteString(code)
	b.done[name] = true
	return err
}

// asFunction returns the code of a module as a call that adds what it exports to modules.
func asFunction(name, code string) (string, error) {
	code = importLine.ReplaceAllStringFunc(code, func(line string) string {
		part := importLine.FindStringSubmatch(line)
		names := part[2]
		if part[1] != "" {
			names = "default: " + part[1]
		}
		return fmt.Sprintf("const { %s } = modules[%q];", names,
			path.Join(path.Dir(name), part[3]))
	})
	var names []string
	for _, found := range exported.FindAllStringSubmatch(code, -1) {
		names = append(names, found[2])
	}
	code = exported.ReplaceAllString(code, "$1 $2")
	for _, list := range exportList.FindAllStringSubmatch(code, -1) {
		for item := range strings.SplitSeq(list[1], ",") {
			inside, outside, renamed := strings.Cut(strings.TrimSpace(item), " as ")
			if renamed {
				inside = outside + ": " + inside
			}
			names = append(names, inside)
		}
	}
	code = exportList.ReplaceAllString(code, "")
	if exportValue.MatchString(code) {
		code = exportValue.ReplaceAllString(code, "const exported = ")
		names = append(names, "default: exported")
	}
	if left := moduleWord.FindString(code); left != "" {
		return "", fmt.Errorf("module %s has an %s in another form", name, left)
	}
	return fmt.Sprintf("\nmodules[%q] = (() => {\n%s\nreturn { %s };\n})();\n", name,
		strings.TrimSpace(code), strings.Join(names, ", ")), nil
}
