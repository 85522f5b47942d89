// SPDX-License-Identifier: Apache-2.0

package schemas_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/apitest"
	"example.com/informerstack/apitest/schemas"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)))
	return u
}

// gauges is a definition with a maximum.
func gauges(t testing.TB, maximum int, more string) *unstructured.Unstructured {
	return object(t, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1",
		"kind":"CustomResourceDefinition","metadata":{"name":"gauges.example.org"},
		"spec":{"group":"example.org","scope":"Cluster",%s
		"names":{"plural":"gauges","kind":"Gauge"},"versions":[
			{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
				"type":"object","properties":{"size":{"type":"integer","maximum":%d,"default":1},
					"name":{"type":"string","maxLength":9,"x-kubernetes-validations":[
						{"rule":"self != 'bad'","message":"it is bad"}]}}}}}]}}`, more, maximum))
}

func gauge(t testing.TB, name, rest string) *unstructured.Unstructured {
	return object(t, `{"apiVersion":"example.org/v1","kind":"Gauge","metadata":{"name":"`+name+
		`"}`+rest+`}`)
}

func start(t testing.TB, options schemas.Options) *apitest.Server {
	s := apitest.NewServer(apitest.Options{Schemas: schemas.New(options)})
	t.Cleanup(s.Close)
	return s
}

// The server's own methods follow the schema too, in a bubble as well.
func TestSchemas_DirectWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, schemas.Options{})
		require.NoError(t, s.Create(gauges(t, 5, "")))
		a := gauge(t, "a", `,"unknown":1`)
		require.NoError(t, s.Create(a))
		assert.Equal(t, int64(1), a.Object["size"])
		assert.NotContains(t, a.Object, "unknown")
		a.Object["size"] = int64(6)
		assert.ErrorContains(t, s.Update(a), "size in body should be less than or equal to 5")
		assert.ErrorContains(t, s.Create(gauge(t, "b", `,"name":"bad"`)), "it is bad")
		assert.ErrorContains(t, s.Create(gauge(t, "b", `,"name":7`)), "must be of type string")
	})
}

// A definition that the server cannot follow is refused, unless an option says that it is ignored.
func TestSchemas_Webhooks(t *testing.T) {
	const webhook = `"conversion":{"strategy":"Webhook","webhook":{
		"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://example.org/"}}},`
	err := start(t, schemas.Options{}).Create(gauges(t, 5, webhook))
	require.ErrorContains(t, err,
		"this server calls no webhooks; see schemas.Options.IgnoreWebhooks")
	require.NoError(t, start(t, schemas.Options{IgnoreWebhooks: true}).Create(
		gauges(t, 5, webhook)))
}

// Objects are written and read while their definition changes: each write meets one of its states.
func TestSchemas_DefinitionChangesDuringWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, schemas.Options{})
		require.NoError(t, s.Create(gauges(t, 5, "")))
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				for j := range 20 {
					name := fmt.Sprintf("g-%d-%d", i, j)
					if err := s.Create(gauge(t, name, `,"size":7`)); err != nil {
						assert.ErrorContains(t, err, "less than or equal to 5")
						assert.Error(t, s.Get(gauge(t, name, "")))
						continue
					}
					got := gauge(t, name, "")
					assert.NoError(t, s.Get(got))
					assert.Equal(t, int64(7), got.Object["size"])
				}
			})
		}
		for maximum := range 10 {
			d := gauges(t, 5, "")
			require.NoError(t, s.Get(d))
			d.Object["spec"] = gauges(t, 5+5*(maximum%2), "").Object["spec"]
			require.NoError(t, s.Update(d))
		}
		writers.Wait()
		require.NoError(t, s.Delete(gauges(t, 5, "")))
		_, err := s.List("gauges.example.org", "")
		assert.ErrorContains(t, err, "no resource")
	})
}

// A server with schemas, a definition with a rule, and an object of it.
func BenchmarkSchemas(b *testing.B) {
	for _, with := range []bool{false, true} {
		options := apitest.Options{}
		if with {
			options.Schemas = schemas.New(schemas.Options{})
		}
		b.Run(fmt.Sprintf("schemas=%t/part=start", with), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				apitest.NewServer(options).Close()
			}
		})
		b.Run(fmt.Sprintf("schemas=%t/part=definition", with), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := apitest.NewServer(options)
				require.NoError(b, s.Create(gauges(b, 5, "")))
				s.Close()
			}
		})
		b.Run(fmt.Sprintf("schemas=%t/part=create", with), func(b *testing.B) {
			s := apitest.NewServer(options)
			defer s.Close()
			require.NoError(b, s.Create(gauges(b, 5, "")))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				require.NoError(b, s.Create(gauge(b, fmt.Sprint("g-", i), `,"size":2,"name":"x"`)))
			}
		})
	}
}
