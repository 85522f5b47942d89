// SPDX-License-Identifier: Apache-2.0

// Package clientgo depends on the packages of client-go that have tests to run on this stack, and
// so selects their version.
//
// excluded.md lists the tests that cannot run, and the tests that assert their rules instead.
package clientgo

import (
	_ "k8s.io/client-go/dynamic/dynamicinformer"
	_ "k8s.io/client-go/metadata/metadatainformer"
	_ "k8s.io/client-go/tools/cache"
	_ "k8s.io/client-go/tools/cache/synctrack"
	_ "k8s.io/client-go/tools/cache/testing"
	_ "k8s.io/client-go/tools/leaderelection"
	_ "k8s.io/client-go/tools/leaderelection/resourcelock"
	_ "k8s.io/client-go/tools/watch"
	_ "k8s.io/client-go/util/workqueue"
)
