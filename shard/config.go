// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Defaults of Config.
const (
	DefaultCount         = 64
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
	DefaultDrainTimeout  = 10 * time.Second
)

// Limits of Config: of what a process can hold, and of what multiples of the duration can be.
const (
	maxCount         = 1 << 20
	maxLeaseDuration = 365 * 24 * time.Hour
)

// Config describes a group of replicas, and this process's part in it. Name, Namespace and Client
// are required.
type Config struct {
	// Name of the group, which its Leases begin with: a DNS label. Replicas with the same Name in
	// the same Namespace share their work.
	Name, Namespace string
	// Client reaches the Leases: a client of coordination.k8s.io/v1. It should have no rate limit,
	// or one of its own, so that other requests do not delay the renewal of the membership.
	Client rest.Interface
	// Count is the number of virtual shards. All replicas must agree on it for the life of the
	// group: it decides on the shard of an object. 64 are enough for about ten replicas; use 64 for
	// each replica of a larger group. It is 1048576 at most. 0 means DefaultCount.
	Count int
	// Identity names this process in Leases and messages. A suffix makes it unique. "" means the
	// host name, which is the pod's name.
	Identity string

	// LeaseDuration, RenewDeadline and RetryPeriod are those of leaderelection, for the membership:
	// a member that was not heard for LeaseDuration, which is a year at most, is replaced. 0 means
	// the default.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// DrainTimeout is how long running reconciles may continue when their shard moves to another
	// replica. Then their context is done. The shard moves when they have returned. 0 means
	// DefaultDrainTimeout.
	DrainTimeout time.Duration
}

// check returns the mistakes in the config.
func (c *Config) check() error {
	var wrong []error
	for _, fault := range validation.IsDNS1123Label(c.Name) {
		wrong = append(wrong, fmt.Errorf("option Name %q: %s", c.Name, fault))
	}
	for _, fault := range validation.IsDNS1123Label(c.Namespace) {
		wrong = append(wrong, fmt.Errorf("option Namespace %q: %s", c.Namespace, fault))
	}
	if c.Client == nil {
		wrong = append(wrong, errors.New("option Client is nil"))
	}
	if c.Count < 0 || c.Count > maxCount {
		wrong = append(wrong, fmt.Errorf("option Count is not in 0..%d: %d", maxCount, c.Count))
	}
	if c.LeaseDuration > maxLeaseDuration {
		wrong = append(wrong, fmt.Errorf("option LeaseDuration is longer than %v: %v",
			maxLeaseDuration, c.LeaseDuration))
	}
	if c.DrainTimeout < 0 {
		wrong = append(wrong, fmt.Errorf("option DrainTimeout is negative: %v", c.DrainTimeout))
	}
	return errors.Join(wrong...)
}

func (c *Config) setDefaults() error {
	c.Count = cmp.Or(c.Count, DefaultCount)
	c.LeaseDuration = cmp.Or(c.LeaseDuration, DefaultLeaseDuration)
	c.RenewDeadline = cmp.Or(c.RenewDeadline, DefaultRenewDeadline)
	c.RetryPeriod = cmp.Or(c.RetryPeriod, DefaultRetryPeriod)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, DefaultDrainTimeout)
	if c.Identity != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find a name for this process: %w; set Identity", err)
	}
	c.Identity = host
	return nil
}

// newIdentity returns the identity of the next term.
func (c *Config) newIdentity() string { return c.Identity + "_" + rand.String(identityLen) }

// identityLen is the length of the random suffix of an identity: 27^10 are 2*10^14.
const identityLen = 10
