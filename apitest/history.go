// SPDX-License-Identifier: Apache-2.0

package apitest

import "strconv"

// History is the end of the log of one resource at one moment.
type History struct {
	ResourceVersion string  // of the last write of any object
	Compacted       string  // states before this version are gone; "0" if all are kept
	Objects         int     // the resource's objects that exist
	Events          []Event // the newest events of the resource that are kept, oldest first
}

// Event is one write in a History.
type Event struct {
	ResourceVersion string
	Type            string // ADDED, MODIFIED or DELETED, as in a watch of all objects
	Key             string // namespace/name, or name
}

// History returns the history of a resource ("pods", "deployments.apps") with at most limit events.
func (s *Server) History(resource string, limit int) History {
	l := s.log
	l.mu.RLock()
	defer l.mu.RUnlock()
	h := History{ResourceVersion: formatVersion(l.rv), Compacted: formatVersion(l.compacted)}
	for _, c := range l.collections {
		if c.resource.Plural != resource && c.resource.GroupResource().String() != resource {
			continue
		}
		for _, e := range c.entries {
			if !e.head.deleted {
				h.Objects++
			}
		}
		for _, e := range c.events[max(0, len(c.events)-limit):] {
			h.Events = append(h.Events, e.describe())
		}
		break
	}
	return h
}

func (e event) describe() Event {
	described := Event{
		ResourceVersion: formatVersion(e.now.rv),
		Type:            "MODIFIED",
		Key:             objectKey(e.now.namespace, e.now.name),
	}
	switch {
	case e.now.deleted:
		described.Type = "DELETED"
	case e.old == nil:
		described.Type = "ADDED"
	}
	return described
}

func formatVersion(rv int64) string { return strconv.FormatInt(rv, 10) }
