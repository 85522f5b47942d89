// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Lease that a person has written may lack any field.
func TestLease_WithoutFields(t *testing.T) {
	empty := &coordinationv1.Lease{}
	assert.Empty(t, holderOf(nil))
	assert.Empty(t, holderOf(empty))
	assert.Zero(t, ownerOf(nil))
	assert.Zero(t, tokenOf(empty))
	assert.Zero(t, leaseDuration(empty))
	leases := leases{count: "8"}
	assert.NoError(t, leases.checkCount(empty))
	empty.Annotations = map[string]string{CountAnnotation: "9"}
	assert.Error(t, leases.checkCount(empty))

	empty.Spec.HolderIdentity = new("a")
	assert.Equal(t, owner{member: "a"}, ownerOf(empty))
	now := metav1.NewMicroTime(time.Now())
	empty.Spec.AcquireTime = &now
	assert.Equal(t, owner{"a", now.Time}, ownerOf(empty))
	empty.Spec.HolderIdentity = new("")
	assert.Zero(t, ownerOf(empty), "a free shard has no time")
}

func TestNewer(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"10", "9", true}, {"9", "10", false}, {"9", "9", false}, {"9", "", true}, {"", "9", false},
		{"", "", false}, {"text", "9", false}, {"9", "text", false}, {"text", "", true},
	} {
		assert.Equal(t, test.want, newer(test.a, test.b), "%q, %q", test.a, test.b)
	}
}
