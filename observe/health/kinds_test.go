// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/informer/served"
	"example.com/informerstack/observe/health"
)

// kinds are two kinds. The first is not served.
type kinds struct{}

func (kinds) Status() []served.Status {
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	return []served.Status{
		{Resource: group.WithResource("websites"), Phase: served.Absent, Reason: "there is none",
			Since: time.Now().Add(-time.Hour), Informers: 2, Required: 1},
		{Resource: group.WithResource("widgets"), Phase: served.Serving, Informers: 1,
			Since: time.Now().Add(-time.Hour)},
	}
}

func TestKinds_OnThePage(t *testing.T) {
	h := health.New()
	remove := h.AddKinds(kinds{})
	assert.Regexp(t, `^kinds that informers follow
  websites.example.com in v1: absent since 1h0m0\S* ago, informers: 2, required: 1: there is none
  widgets.example.com in v1: serving since 1h0m0\S* ago, informers: 1, required: 0
$`, h.Page().String())
	answer := h.Why("default/shop")
	assert.Equal(t, health.Unknown, answer.Reason)
	assert.Contains(t, answer.Evidence,
		"no informer has objects of websites.example.com: there is none")
	assert.NotContains(t, answer.String(), "widgets")
	remove()
	assert.Empty(t, h.Page().Kinds)
}
