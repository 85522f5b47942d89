// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Tests run in parallel on one server, so the version of a list depends on the writes of others;
// its printed name must not.
func TestNormalizer_NamesAListsVersionByTheObjectsOfThisTest(t *testing.T) {
	n := newNormalizer(t, "ns")
	for _, rv := range []string{"10", "20", "30"} {
		n.objectVersion(rv)
	}
	for rv, name := range map[string]string{
		"9": "old", "10": "rv1", "11": "rv1", "19": "rv1", "20": "rv2", "29": "rv2", "30": "now",
		"99": "now",
		"":   "", "words": "words",
	} {
		require.Equal(t, name, n.collectionVersion(rv), "version %q of a list", rv)
	}
}
