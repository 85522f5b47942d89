// SPDX-License-Identifier: Apache-2.0

package apitest

// A program in a browser has no actions and no permissions: their Go types are too large for it.

type action struct {
	subresource string
	body        *Resource
}

const userTable = ""

func (*Resource) actions() []*action { return nil }

func (*Resource) action(string) *action { return nil }

func (*call) act(*action) error { return nil }

func (*call) permit() error { return nil }

func (*call) mayCreateLocked() error { return nil }

func (*call) byUserLocked(_, _ *object) error { return nil }

func keepRequest(_, _ *object, _ string) {}

func (*Server) createRoles() {}

func (*Server) aggregateLocked(*collection) {}
