// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/reflector/wire"
)

// The items of a list are decoded one by one, as they arrive.
func ExampleReadList() {
	body := strings.NewReader(`{
		"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "10245"},
		"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]
	}`)
	newPod := func() runtime.Object { return &v1.Pod{} }
	listMeta, err := wire.ReadList(body, newPod, wire.Options{}, func(obj runtime.Object) error {
		fmt.Println("item", obj.(*v1.Pod).Name)
		return nil
	})
	fmt.Println(listMeta.ResourceVersion, err)

	// Output:
	// item a
	// item b
	// 10245 <nil>
}

// With -v, selected tests print what they show.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
