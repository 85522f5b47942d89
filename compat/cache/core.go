// SPDX-License-Identifier: Apache-2.0

package cache

import "example.com/informerstack/informer"

// Core returns the informer that does the work, for those who ask more of it than client-go's names say: its health, say.
// It is no method of SharedIndexInformer; an interface that has it finds out.
func (s *sharedInformer) Core() informer.SharedIndexInformer { return s.core }
