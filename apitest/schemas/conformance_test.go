// SPDX-License-Identifier: Apache-2.0

package schemas_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/apitest/schemas"
	"example.com/informerstack/internal/tools/conformance"
)

// apitest gives the answers of the real server about the schemas of custom kinds.
func TestSchemas_Conformance(t *testing.T) {
	conformance.RunFolder(t, target(t), "schemas")
}

// With schemas, all other answers are the real server's too.
func TestConformance(t *testing.T) {
	conformance.Run(t, target(t))
}

func target(t *testing.T) conformance.Target {
	s := apitest.NewServer(apitest.Options{
		Scheme: scheme.Scheme, NoShards: true, ManagedFields: true,
		Schemas: schemas.New(schemas.Options{}),
	})
	require.NoError(t, s.Start())
	t.Cleanup(s.Close)
	return conformance.Target{
		Variant: "apitest",
		Config:  &rest.Config{Host: s.URL, QPS: -1},
		Expire:  func(*testing.T) { s.Faults().Compact() },
		Folder:  "../../testdata/conformance",
	}
}
