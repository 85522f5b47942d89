// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"example.com/informerstack/apitest"
)

// load creates the CustomResourceDefinitions of crds, and then all objects of files, definitions
// first.
func load(server *apitest.Server, crds, files []string) error {
	isDefinition := func(d document) bool { return d.object.GetKind() == definition }
	definitions, err := read(crds)
	if err != nil {
		return fmt.Errorf("--crds %w", err)
	}
	definitions = slices.DeleteFunc(definitions, func(d document) bool { return !isDefinition(d) })
	if len(definitions) == 0 && len(crds) > 0 {
		return fmt.Errorf("--crds %q: no %s is there", crds, definition)
	}
	objects, err := read(files)
	if err != nil {
		return fmt.Errorf("--load %w", err)
	}
	for _, first := range []bool{true, false} {
		for _, d := range objects {
			if d.object.GetKind() == "" {
				return fmt.Errorf("--load %s: it is not an object: it has no kind", d.file)
			}
			if isDefinition(d) == first {
				definitions = append(definitions, d)
			}
		}
	}
	for _, d := range definitions {
		err := server.Create(d.object)
		if apierrors.IsInvalid(err) && d.object.GetNamespace() == "" { // as kubectl does
			d.object.SetNamespace(metav1.NamespaceDefault)
			err = server.Create(d.object)
		}
		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", d.file, d.object.GetKind(), d.object.GetName(), err)
		}
	}
	return nil
}

const definition = "CustomResourceDefinition"

// document is an object and its place.
type document struct {
	object *unstructured.Unstructured
	file   string
}

// read returns the objects of files, and of the files in folders.
func read(paths []string) (documents []document, err error) {
	for _, path := range paths {
		files := []string{path}
		if entries, err := os.ReadDir(path); err == nil {
			files = nil
			for _, entry := range entries {
				extensions := []string{".yaml", ".yml", ".json"}
				if slices.Contains(extensions, filepath.Ext(entry.Name())) {
					files = append(files, filepath.Join(path, entry.Name()))
				}
			}
		}
		for _, file := range files {
			if documents, err = readFile(documents, file); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return documents, nil
}

// readFile appends the objects of a file, those of lists included.
func readFile(documents []document, file string) ([]document, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(opened), 4<<10)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		case len(object.Object) == 0: // an empty document
		case object.IsList():
			err = object.EachListItem(func(item runtime.Object) error {
				documents = append(documents, document{item.(*unstructured.Unstructured), file})
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		default:
			documents = append(documents, document{object, file})
		}
	}
}
