// SPDX-License-Identifier: Apache-2.0

// Package jsonlist decodes a Kubernetes list item by item while it is being received, so that
// neither its bytes nor all its objects need to be in memory together.
//
//	API server - LIST - [jsonlist] - objects -> reflector
//
// Read decode.go, then scanner.go; then go test -v ./internal/jsonlist. No goroutines, no locks.
package jsonlist

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Decode reads a list object as JSON from body. It decodes each item into an object of newItem's as
// soon as the item has arrived, and calls each with it, in order. An unstructured item without
// apiVersion and kind gets those that the list implies. A Status is returned as the error it means.
//
// Nothing that was read stays referenced once Decode has returned. On an error, each may have been
// called already.
func Decode(
	body io.Reader, newItem func() runtime.Object, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	d := decoder{in: newScanner(body), newItem: newItem, each: each}
	if err := d.decode(); err != nil {
		return metav1.ListMeta{}, err
	}
	return d.meta, nil
}

// decoder is one Decode.
type decoder struct {
	in      *scanner
	newItem func() runtime.Object
	each    func(runtime.Object) error

	head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	meta      metav1.ListMeta
	sawItems  bool
	itemCount int
	nameless  []*unstructured.Unstructured // items that came before the list's kind
	other     map[string]json.RawMessage   // fields that a list does not have; a Status does
}

var errRepeated = errors.New(`field "items" is repeated`)

func (d *decoder) decode() error {
	if err := d.in.object(d.field); err != nil {
		return fmt.Errorf("read list after %d items: %w", d.itemCount, err)
	}
	if err := d.in.end(); err != nil {
		return fmt.Errorf("read list after %d items: %w", d.itemCount, err)
	}
	switch {
	case d.head.Kind == "Status":
		return d.status()
	case !d.sawItems && !strings.HasSuffix(d.head.Kind, "List"):
		return fmt.Errorf("read list: got a %s %q instead", d.head.APIVersion, d.head.Kind)
	}
	for _, item := range d.nameless {
		d.setKind(item)
		if err := d.each(item); err != nil {
			return err
		}
	}
	return nil
}

// field reads the value of one of the list's own fields.
func (d *decoder) field(name string) error {
	if name == "items" {
		if d.sawItems { // each has the first ones already, where a decode of the whole drops them
			return errRepeated
		}
		d.sawItems = true
		return d.in.array(d.item)
	}
	raw, err := d.in.value()
	if err != nil {
		return err
	}
	switch name {
	case "apiVersion":
		return utiljson.Unmarshal(raw, &d.head.APIVersion)
	case "kind":
		return utiljson.Unmarshal(raw, &d.head.Kind)
	case "metadata":
		return utiljson.Unmarshal(raw, &d.meta)
	}
	if !json.Valid(raw) {
		return fmt.Errorf("%w: field %.64q", errSyntax, name)
	}
	if d.other == nil {
		d.other = map[string]json.RawMessage{}
	}
	d.other[name] = append(json.RawMessage(nil), raw...)
	return nil
}

func (d *decoder) item() error {
	raw, err := d.in.value()
	if err != nil {
		return err
	}
	if raw[0] != '{' {
		return fmt.Errorf("item %d is no object: %s", d.itemCount, excerpt(raw))
	}
	item := d.newItem()
	u, isUnstructured := item.(*unstructured.Unstructured)
	if isUnstructured {
		u.Object = nil
		err = utiljson.Unmarshal(raw, &u.Object)
	} else {
		err = utiljson.Unmarshal(raw, item)
	}
	if err != nil {
		return fmt.Errorf("decode item %d into %T: %w", d.itemCount, item, err)
	}
	d.itemCount++
	if isUnstructured && u.GetKind() == "" && u.GetAPIVersion() == "" {
		if d.head.Kind == "" || d.head.APIVersion == "" {
			d.nameless = append(d.nameless, u)
			return nil
		}
		d.setKind(u)
	}
	return d.each(item)
}

func (d *decoder) setKind(u *unstructured.Unstructured) {
	u.SetKind(strings.TrimSuffix(d.head.Kind, "List"))
	u.SetAPIVersion(d.head.APIVersion)
}

// status is the error that a Status in the place of a list means.
func (d *decoder) status() error {
	raw, err := json.Marshal(d.other)
	if err != nil {
		return fmt.Errorf("read Status: %w", err)
	}
	var status metav1.Status
	if err := utiljson.Unmarshal(raw, &status); err != nil {
		return fmt.Errorf("read Status: %w", err)
	}
	if status.Status == metav1.StatusSuccess {
		return fmt.Errorf("read list: got a Status %q instead", status.Status)
	}
	return apierrors.FromObject(&status)
}
