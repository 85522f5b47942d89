// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func pod(resourceVersion string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: resourceVersion}}
}

func TestIsNil(t *testing.T) {
	for _, obj := range []any{nil, (*corev1.Pod)(nil)} {
		require.True(t, IsNil(obj), "%T", obj)
	}
	for _, obj := range []any{pod(""), "", 0, struct{}{}, map[string]any(nil), []any(nil)} {
		require.False(t, IsNil(obj), "%T", obj)
	}
}

func TestIsSecret(t *testing.T) {
	secret := metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	for _, obj := range []any{
		&corev1.Secret{}, &metav1.PartialObjectMetadata{TypeMeta: secret},
		&metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{
			APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}},
	} {
		require.True(t, IsSecret(obj), "%T", obj)
	}
	for _, obj := range []any{
		nil, (*corev1.Secret)(nil), "Secret", &corev1.ConfigMap{},
		&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Secret"}},
	} {
		require.False(t, IsSecret(obj), "%T", obj)
	}
}

func TestMeta(t *testing.T) {
	m, err := Meta(pod("7"))
	require.NoError(t, err)
	require.Equal(t, "7", m.GetResourceVersion())
	for _, obj := range []any{nil, (*corev1.Pod)(nil), "text"} {
		_, err := Meta(obj)
		require.ErrorContains(t, err, "object has no meta: ", "%T", obj)
	}
}

// Two objects are known to be one version only if they are one object, or have equal
// resourceVersions. Objects of a fake server may have no resourceVersion.
func TestSameVersion(t *testing.T) {
	p, unversioned, text := pod("1"), pod(""), "text"
	for name, c := range map[string]struct {
		older, newer any
		want         bool
	}{
		"same pointer":                        {p, p, true},
		"same version":                        {pod("1"), pod("1"), true},
		"same pointer, no version":            {unversioned, unversioned, true},
		"same pointer, no metadata":           {&text, &text, true},
		"new version":                         {pod("1"), pod("2"), false},
		"no version":                          {pod(""), pod(""), false},
		"a version that was added":            {pod(""), pod("1"), false},
		"a version that was removed":          {pod("1"), pod(""), false},
		"no metadata":                         {"text", "text", false},
		"metadata on one side":                {"text", pod("1"), false},
		"metadata on the other":               {pod("1"), "text", false},
		"values that cannot be compared":      {[]string{"a"}, []string{"a"}, false},
		"nil pointers, which have no version": {(*corev1.Pod)(nil), (*corev1.Pod)(nil), false},
		"nothing":                             {nil, nil, false},
	} {
		require.Equal(t, c.want, SameVersion(c.older, c.newer), name)
	}
}

// A text that only some parsers read as a number is not a version.
func TestVersionNumber(t *testing.T) {
	for text, want := range map[string]float64{
		"7": 7, "0": 0, "9123456789012345678": 456_789_012_345_678,
		"999999999999999999999": 999_999_999_999_999,
	} {
		got, ok := VersionNumber(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "1e5", "0x10", "1_000", "-5", "+5", " 5", "1.5", "NaN"} {
		_, ok := VersionNumber(text)
		require.False(t, ok, "%q", text)
	}
}
