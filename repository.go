// SPDX-License-Identifier: Apache-2.0

// Package informerstack contains the files of its repository: the documentation, the code and the
// tests. The laboratory (cmd/informerstack/lab) shows them beside the running program. For the
// pieces, see the packages in the folders, and docs/README.md.
package informerstack

import "embed"

// Files contains the repository's files without its nested modules. Their paths are relative to
// the repository, such as docs/store.md.
//
//go:embed *.md .ci/run LICENSE Makefile repository.go
//go:embed apitest client cmd compat controller deltafifo docs informer internal leaderelection
//go:embed observe reflector shard store testdata workqueue
var Files embed.FS
