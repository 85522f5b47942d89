// SPDX-License-Identifier: Apache-2.0

package deltafifo

// DeltaType says what happened to an object.
type DeltaType string

// The types of a Delta. The last three are not about a single object.
const (
	Added    DeltaType = "Added"
	Updated  DeltaType = "Updated"
	Deleted  DeltaType = "Deleted"
	Replaced DeltaType = "Replaced" // a relist held the object
	Sync     DeltaType = "Sync"     // a resync replays the object

	ReplacedAll DeltaType = "ReplacedAll" // a whole list: Object is a ReplacedAllInfo
	SyncAll     DeltaType = "SyncAll"     // a resync of everything: Object is a SyncAllInfo
	Bookmark    DeltaType = "Bookmark"    // time passed without a change: Object is a BookmarkInfo
)

// Delta is one change: what happened, and the object after it happened (for a delete: before it vanished).
//
// Source: tools/cache/delta_fifo.go Delta
type Delta struct {
	Type   DeltaType
	Object any
}

// Deltas is everything that happened to one object since its consumer last looked, oldest first.
type Deltas []Delta

// Oldest returns the first delta, or nil when there is none.
func (d Deltas) Oldest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[0]
}

// Newest returns the last delta, or nil when there is none.
func (d Deltas) Newest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[len(d)-1]
}

// ReplacedAllInfo is the object of a ReplacedAll delta: the collection's whole content at ResourceVersion.
type ReplacedAllInfo struct {
	ResourceVersion string
	Objects         []any
}

// SyncAllInfo is the object of a SyncAll delta.
type SyncAllInfo struct{}

// BookmarkInfo is the object of a Bookmark delta.
type BookmarkInfo struct {
	ResourceVersion string
}
