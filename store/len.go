// SPDX-License-Identifier: Apache-2.0

package store

// Len is the number of objects, for who wants no copy of the keys.
func (m *threadSafeMap) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.items.len()
}

// Len is the number of objects. A Store that New or NewIndexer made has it.
func (c *cache) Len() int { return c.storage.Len() }
