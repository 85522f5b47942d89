// SPDX-License-Identifier: Apache-2.0

package sizes_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/observe/sizes"
	"example.com/informerstack/store"
)

// Sizes show which fields of the stored objects take the memory.
func ExampleMeasure() {
	pods := store.New(store.MetaNamespaceKeyFunc, store.Options{})
	for i := range 1000 {
		web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("web-", i), ResourceVersion: "1",
			Annotations: map[string]string{"note": strings.Repeat("x", 3000)},
		}}
		if err := pods.Add(web); err != nil {
			fmt.Println(err)
		}
	}
	measured := sizes.Measure(pods)
	fmt.Println(measured.Objects, "objects")
	note := measured.Field(".metadata.annotations.note")
	fmt.Printf("note: %.0f %%, %.0f MB\n", 100*note.Share, float64(note.Bytes)/1e6)
	// Output:
	// 1000 objects
	// note: 66 %, 3 MB
}
