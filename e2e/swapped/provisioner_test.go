// SPDX-License-Identifier: Apache-2.0

package swapped_test

import "testing"

// The library of external storage provisioners: shared informers, indexers, rate-limited queues and
// leader election.
//
// Its tests need a machine with time to spare. They look after 200 ms, and leave controllers
// running with leases as short: whoever is paused for longer does not lead on here, and ends the
// process; on client-go it renews when it wakes up. And each new controller adds to the scheme that
// those left running read, which ends the process on both.
func TestSwapped_Provisioner(t *testing.T) {
	samePasses(t, "provisioner", nil, nil,
		"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/...")
}
