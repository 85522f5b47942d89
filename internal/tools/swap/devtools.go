// SPDX-License-Identifier: Apache-2.0

package swap

import (
	"fmt"
	"os"
	"path/filepath"
)

// DevtoolsVariable is compat/devtools.Environment. Importing that package here would start its
// server in the tool itself.
const DevtoolsVariable = "INFORMERSTACK_DEVTOOLS"

// The copy's tools/cache imports compat/devtools, whose server starts with the program. It cannot
// be util/workqueue, which client-go's rest uses: devtools use rest.
const (
	devtoolsFolder  = "tools/cache"
	devtoolsPackage = "cache"
	devtoolsFile    = "informerstack_devtools.go"
)

// addDevtools links compat/devtools into every program that uses the copy's tools/cache.
func (f *folder) addDevtools() error {
	path := filepath.Join(f.new, copyName, filepath.FromSlash(devtoolsFolder), devtoolsFile)
	text := fmt.Sprintf("%s\npackage %s\n\nimport _ %q\n", generated, devtoolsPackage,
		stackPath+"/compat/devtools")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", devtoolsFile, err)
	}
	return nil
}
