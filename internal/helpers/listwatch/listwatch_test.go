// SPDX-License-Identifier: Apache-2.0

package listwatch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestIsQuestion(t *testing.T) {
	assert.True(t, IsQuestion(Question()))
	for _, list := range []metav1.ListOptions{
		{}, {Limit: 2}, {Limit: 1, ResourceVersion: "0"}, {Limit: 1, Continue: "next"},
	} {
		assert.False(t, IsQuestion(list), "%+v", list)
	}
}

func TestIsUnreachable(t *testing.T) {
	assert.True(t, IsUnreachable(watch.NewEmptyWatch()))
	assert.False(t, IsUnreachable(watch.NewFake()))
	assert.False(t, IsUnreachable(nil))
}
