// SPDX-License-Identifier: Apache-2.0

package swapped_test

import "testing"

// The library of external storage provisioners: shared informers, indexers, rate-limited queues and
// leader election.
//
// Its tests need an idle machine. They check after 200 ms, and leave controllers running with
// leases as short: a leader that is paused for longer loses its lease on this stack, which ends the
// process; on client-go it renews when it wakes up. Also, each new controller adds to the scheme
// that the running ones read, which ends the process on both.
func TestSwapped_Provisioner(t *testing.T) {
	samePasses(t, "provisioner", nil, nil,
		"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/...")
}
