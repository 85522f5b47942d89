// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNew_RefusesInvalidConfigs(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no name":          {func(c *Config) { c.Name = "" }, "option Name"},
		"no namespace":     {func(c *Config) { c.Namespace = "" }, "option Namespace"},
		"no client":        {func(c *Config) { c.Client = nil }, "option Client is nil"},
		"negative count":   {func(c *Config) { c.Count = -1 }, "option Count"},
		"count too large":  {func(c *Config) { c.Count = math.MaxInt }, "option Count"},
		"negative drain":   {func(c *Config) { c.DrainTimeout = -1 }, "option DrainTimeout"},
		"negative lease":   {func(c *Config) { c.LeaseDuration = -1 }, "leaseDuration"},
		"lease too long":   {func(c *Config) { c.LeaseDuration = math.MaxInt64 }, "LeaseDuration"},
		"retry beyond all": {func(c *Config) { c.RetryPeriod = time.Hour }, "retryPeriod"},
		"negative retry":   {func(c *Config) { c.RetryPeriod = -1 }, "retryPeriod"},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Name: "g", Namespace: "default", Client: restClient(t, newLink(nil))}
			test.change(&c)
			_, err := New(c)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestNew_Defaults(t *testing.T) {
	s, err := New(Config{Name: "g", Namespace: "default", Client: restClient(t, newLink(nil))})
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	s.config.Client = nil
	assert.Equal(t, Config{
		Name: "g", Namespace: "default", Count: DefaultCount, Identity: host,
		LeaseDuration: DefaultLeaseDuration, RenewDeadline: DefaultRenewDeadline,
		RetryPeriod: DefaultRetryPeriod, DrainTimeout: DefaultDrainTimeout,
	}, s.config)
	assert.Len(t, s.slots, DefaultCount)
}
