// SPDX-License-Identifier: Apache-2.0

package synctrack_test

import (
	"fmt"
	"os"
	"testing"

	"example.com/informerstack/compat/cache/synctrack"
	"example.com/informerstack/internal/tools/narrate"
)

// A handler starts work on each object of the initial list. The tracker has synced when the
// informer has synced and the work is finished.
func Example() {
	tracker := synctrack.NewAsyncTracker[string]("pods")
	tracker.Start("default/web-0") // in OnAdd, if isInInitialList
	tracker.UpstreamHasSynced()    // the informer has synced
	fmt.Println("synced:", tracker.HasSynced())

	tracker.Finished("default/web-0") // by the worker, later
	fmt.Println("synced:", tracker.HasSynced())
	// Output:
	// synced: false
	// synced: true
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
