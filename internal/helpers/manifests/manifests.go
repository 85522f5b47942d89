// SPDX-License-Identifier: Apache-2.0

// Package manifests reads the objects of YAML and JSON files.
//
//	files, folders -> [manifests] -> apitest, realserver
//
// Read manifests.go; then go test -v ./internal/helpers/manifests. Goroutines and locking: none.
package manifests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Document is an object and its place. It has a kind.
type Document struct {
	*unstructured.Unstructured
	File string
}

// Wrap describes a failure with the document and its file.
func (d Document) Wrap(err error) error {
	return fmt.Errorf("%s: %s %s: %w", d.File, d.GetKind(), d.GetName(), err)
}

var definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

func (d Document) isDefinition() bool { return d.GroupVersionKind().GroupKind() == definition }

// Read returns the CustomResourceDefinitions in crds and files, and the other objects in files, in
// their order. Both name YAML or JSON files, or folders of them; the files of a folder are read in
// the order of their names, without its folders. Lists are opened, and the other objects in crds
// are left out. An error names the file.
func Read(crds, files []string) (definitions, objects []Document, err error) {
	if definitions, err = read(crds); err != nil {
		return nil, nil, err
	}
	definitions = slices.DeleteFunc(definitions,
		func(d Document) bool { return !d.isDefinition() })
	if len(definitions) == 0 && len(crds) > 0 {
		return nil, nil, fmt.Errorf("no %s in %q", definition.Kind, crds)
	}
	if objects, err = read(files); err != nil {
		return nil, nil, err
	}
	for _, d := range objects {
		if d.GetKind() == "" {
			return nil, nil, fmt.Errorf("%s: it is not an object: it has no kind", d.File)
		}
		if d.isDefinition() {
			definitions = append(definitions, d)
		}
	}
	return definitions, slices.DeleteFunc(objects, Document.isDefinition), nil
}

func read(paths []string) (documents []Document, err error) {
	for _, path := range paths {
		files := []string{path}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			if files, err = filesOf(path); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			if documents, err = readFile(documents, file); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return documents, nil
}

// filesOf returns the files of a folder that have the extensions of YAML and JSON.
func filesOf(folder string) (files []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name())
		if !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, extension) {
			files = append(files, filepath.Join(folder, entry.Name()))
		}
	}
	return files, err
}

// readFile appends the objects of a file.
func readFile(documents []Document, file string) ([]Document, error) {
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
			return nil, err
		case len(object.Object) == 0: // an empty document
		case object.IsList():
			err = object.EachListItem(func(item runtime.Object) error {
				documents = append(documents, Document{item.(*unstructured.Unstructured), file})
				return nil
			})
			if err != nil {
				return nil, err
			}
		default:
			documents = append(documents, Document{object, file})
		}
	}
}
