// SPDX-License-Identifier: Apache-2.0

package schemas_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/apitest"
	"example.com/informerstack/apitest/schemas"
)

const mugs = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
	"metadata":{"name":"mugs.example.org"},
	"spec":{"group":"example.org","scope":"Cluster","names":{"plural":"mugs","kind":"Mug"},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
		"type":"object","properties":{"spec":{"type":"object","properties":{
			"size":{"type":"integer","maximum":5},
			"color":{"type":"string","default":"white"}}}}}}}]}}`

func Example() {
	server := apitest.NewServer(apitest.Options{Schemas: schemas.New(schemas.Options{})})
	defer server.Close()
	create := func(text string) {
		obj := &unstructured.Unstructured{}
		err := obj.UnmarshalJSON([]byte(text))
		if err == nil {
			err = server.Create(obj)
		}
		fmt.Println(obj.Object["spec"], err != nil)
	}
	definition := &unstructured.Unstructured{}
	if definition.UnmarshalJSON([]byte(mugs)) != nil || server.Create(definition) != nil {
		return
	}
	create(`{"apiVersion":"example.org/v1","kind":"Mug","metadata":{"name":"a"},"spec":{"size":3}}`)
	create(`{"apiVersion":"example.org/v1","kind":"Mug","metadata":{"name":"b"},"spec":{"size":6}}`)
	// Output:
	// map[color:white size:3] false
	// map[size:6] true
}
