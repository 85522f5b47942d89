// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"example.com/informerstack/compat/internal/setters"
	"example.com/informerstack/informer"
)

// Core returns the informer inside, which can do more than client-go's interface: report its
// health, for example. SharedIndexInformer does not have this method; adapt.CoreInformer calls it.
func (s *sharedInformer) Core() informer.SharedIndexInformer { return s.core }

// Setters returns the holder of the transform and the watch error handler, for package adapt.
func (s *sharedInformer) Setters() *setters.Setters { return &s.setters }
