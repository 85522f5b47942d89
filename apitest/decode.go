// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	contentYAML     = "application/yaml"
	contentProtobuf = "application/vnd.kubernetes.protobuf"
)

// codecs decode with the Go types of a scheme. A nil *codecs knows no type.
type codecs struct {
	scheme   *runtime.Scheme
	json     runtime.Serializer // returns unknown fields as an error beside the object
	protobuf runtime.Serializer
}

func newCodecs(scheme *runtime.Scheme) *codecs {
	return &codecs{
		scheme: scheme, protobuf: protobuf.NewSerializer(scheme, scheme),
		json: jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme,
			scheme, jsonserializer.SerializerOptions{Strict: true}),
	}
}

// newObject returns an empty object of the resource's Go type, or nil if that is not known.
func (k *codecs) newObject(r *Resource) runtime.Object {
	if k == nil {
		return nil
	}
	obj, err := k.scheme.New(r.GroupVersionKind())
	if err != nil {
		return nil
	}
	return obj
}

// bodyType returns the media type of the body, or 415 if the server cannot read it.
func (c *call) bodyType() (string, error) {
	supported := []string{contentJSON, contentYAML}
	if c.server.codecs != nil {
		supported = append(supported, contentProtobuf)
	}
	header := c.http.Header.Get("Content-Type")
	if header == "" {
		return contentJSON, nil
	}
	if mediaType, _, err := mime.ParseMediaType(header); err == nil {
		for _, s := range supported {
			if s == mediaType {
				return s, nil
			}
		}
	}
	return "", unsupportedMediaType(supported)
}

func unsupportedMediaType(supported []string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - " +
			"accepted media types include: " + strings.Join(supported, ", "),
	}}
}

// decode reads the object in a body.
func (c *call) decode(data []byte, fieldValidation string) (*object, error) {
	mediaType, err := c.bodyType()
	if err != nil {
		return nil, err
	}
	expected := c.resource.GroupVersionKind()
	gvk := expected
	switch mediaType {
	case contentYAML:
		if data, err = yaml.ToJSON(data); err != nil {
			return nil, c.undecodable(nil, err, data)
		}
	case contentProtobuf:
		return c.decodeProtobuf(data)
	}
	found, err := jsonserializer.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return nil, c.undecodable(nil, err, data)
	}
	if !c.resource.builtin && (found.Kind == "" || found.Version == "") {
		return nil, c.undecodable(nil, missingKind(found, data), data)
	}
	if found.Kind != "" {
		gvk.Kind = found.Kind
	}
	if found.Version != "" {
		gvk.Group, gvk.Version = found.Group, found.Version
	}
	obj, err := c.server.parseAs(c.resource, gvk, data)
	if err = c.allowUnknown(err, fieldValidation); err != nil {
		return nil, c.undecodable(&gvk, err, data)
	}
	return obj, c.checkKind(gvk, obj.meta.Name)
}

func missingKind(found *schema.GroupVersionKind, data []byte) error {
	if found.Kind == "" {
		return runtime.NewMissingKindErr(string(data))
	}
	return runtime.NewMissingVersionErr(string(data))
}

// checkKind compares the type that the body states with the type that the path requires.
func (c *call) checkKind(gvk schema.GroupVersionKind, name string) error {
	want := c.resource.GroupVersionKind()
	if gvk.Kind != want.Kind && !c.resource.builtin && gvk.GroupVersion() == want.GroupVersion() {
		return apierrors.NewInvalid(gvk.GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("kind"), gvk.Kind, "must be "+want.Kind)})
	}
	if gvk.Kind != want.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: "+
			"converting (%s) to (%s): unknown conversion",
			gvk.Kind, gvk.Version, want.Kind, goName(gvk.Version, gvk.Kind),
			goName(want.Group, want.Kind)))
	}
	if gvk.GroupVersion() != want.GroupVersion() {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)",
			gvk.GroupVersion(), want.GroupVersion()))
	}
	return nil
}

// goName returns the name of a Go type in the real server's messages: v1.Pod, core.ConfigMap.
func goName(pkg, kind string) string {
	pkg, _, _ = strings.Cut(pkg, ".")
	if pkg == "" {
		pkg = "core"
	}
	return pkg + "." + kind
}

// undecodable is the error for a body that cannot be decoded.
func (c *call) undecodable(gvk *schema.GroupVersionKind, cause error, data []byte) error {
	if gvk != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
			gvk.Kind, gvk.Version, c.resource.Kind, cause))
	}
	return apierrors.NewBadRequest(
		fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
			c.resource.Kind, cause, summary(data)))
}

const summaryLen = 30

// summary returns the part of a body that an error shows.
func summary(data []byte) string {
	if len(data) == 0 {
		return "<empty>"
	}
	more := ""
	if len(data) > summaryLen {
		data, more = data[:summaryLen], " ..."
	}
	if data[0] == '{' {
		return string(data) + more
	}
	return hex.EncodeToString(data) + more
}

// parseAs reads JSON that states the type gvk. If that is not the resource's type, only its form is
// checked.
func (s *Server) parseAs(
	r *Resource, gvk schema.GroupVersionKind, data []byte,
) (*object, error) {
	if gvk != r.GroupVersionKind() {
		return parseObject(data)
	}
	return s.parse(r, data)
}

// parse reads JSON as an object of the resource. If the resource has a schema, it prunes and
// defaults the object. If the scheme has its type, values of the wrong type are errors, and unknown
// fields are dropped. In both cases an error of unknown fields is returned beside the object.
func (s *Server) parse(r *Resource, data []byte) (*object, error) {
	if r.schema != nil {
		return r.parseBySchema(data)
	}
	typed := s.codecs.newObject(r)
	if typed == nil {
		return parseObject(data)
	}
	gvk := r.GroupVersionKind()
	decoded, _, unknown := s.codecs.json.Decode(data, &gvk, typed)
	if unknown != nil && !runtime.IsStrictDecodingError(unknown) {
		return nil, unknown
	}
	obj, err := fromTyped(decoded)
	if err != nil {
		return nil, err
	}
	return obj, unknown
}

func fromTyped(obj runtime.Object) (*object, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return parseObject(data)
}

func (c *call) decodeProtobuf(data []byte) (*object, error) {
	gvk := c.resource.GroupVersionKind()
	decoded, found, err := c.server.codecs.protobuf.Decode(data, &gvk, nil)
	if err != nil {
		return nil, c.undecodable(found, err, data)
	}
	if err := c.checkKind(*found, ""); err != nil {
		return nil, err
	}
	return fromTyped(decoded)
}

// decodeDeleteOptions reads the options in a body.
func (c *call) decodeDeleteOptions(data []byte, o *metav1.DeleteOptions) error {
	mediaType, err := c.bodyType()
	if err != nil {
		return err
	}
	switch mediaType {
	case contentYAML:
		data, err = yaml.ToJSON(data)
	case contentProtobuf:
		unknown := runtime.Unknown{}
		if len(data) < 4 {
			return apierrors.NewBadRequest(
				"provided data does not appear to be a protobuf message")
		}
		// after the four bytes that mark Kubernetes' protobuf
		if err = unknown.Unmarshal(data[4:]); err == nil {
			err = o.Unmarshal(unknown.Raw)
		}
		if err == nil {
			data, err = json.Marshal(o)
		}
	}
	if err == nil {
		_, err = jsonserializer.DefaultMetaFactory.Interpret(data)
	}
	if err == nil {
		err = json.Unmarshal(data, o)
	}
	if err == nil && o.Kind != "" && o.Kind != "DeleteOptions" {
		err = errors.New("decoded object cannot be converted to DeleteOptions")
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}
