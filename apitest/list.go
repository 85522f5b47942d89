// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decodeQuery reads the parameters of a request into one of the option types.
func decodeQuery(query url.Values, into runtime.Object) error {
	if err := internalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion,
		into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// parseVersion reads a resourceVersion; "" is 0. Its error becomes a 500 in the real server, except
// where a list is asked for.
func parseVersion(rv string) (int64, error) {
	if rv == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(rv, 10, 64)
	if err != nil {
		return 0, field.ErrorList{field.Invalid(field.NewPath("resourceVersion"), rv,
			err.Error())}.ToAggregate()
	}
	return int64(min(n, math.MaxInt64)), nil
}

// listOptions reads and checks the options of a list, watch or deletecollection.
func (c *call) listOptions() (internalversion.ListOptions, *selector, error) {
	var options internalversion.ListOptions
	if err := decodeQuery(c.Query, &options); err != nil {
		return options, nil, err
	}
	options.Watch = c.Verb == "watch"
	internalversion.SetListOptionsDefaults(&options, true)
	if errs := internalvalidation.ValidateListOptions(&options, true); len(errs) > 0 {
		return options, nil, apierrors.NewInvalid(
			schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	sel, err := newSelector(c.target, options.LabelSelector, options.FieldSelector)
	if err == nil && options.ShardSelector != "" && !c.server.options.NoShards {
		if sel.shards, err = parseShards(options.ShardSelector); err != nil {
			err = fmt.Errorf("invalid shard selector: %w", err)
		}
	}
	return options, sel, err
}

// page holds the decisions about one LIST request.
type page struct {
	rv    int64 // of the state to show; 0 means the newest that may be shown
	stale bool  // a replica's view is good enough
	start string
	limit int64
}

// plan decides which state a list shows, and waits until that state exists.
func (c *call) plan(options internalversion.ListOptions) (page, error) {
	p := page{limit: options.Limit}
	if options.Continue != "" {
		return c.planContinue(options, p)
	}
	n, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return p, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if options.ResourceVersion == "" {
		return p, nil
	}
	exact := options.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	if options.ResourceVersionMatch == "" && p.limit > 0 && n > 0 {
		// the meaning of limit and resourceVersion before there was resourceVersionMatch
		exact = true
	}
	if n == 0 {
		p.limit = 0 // a cache serves these whole
	}
	p.stale = true
	if exact {
		p.rv = n
	}
	return p, c.server.log.waitVisible(c.http.Context(), n)
}

func (c *call) planContinue(options internalversion.ListOptions, p page) (page, error) {
	token, err := parseContinue(options.Continue)
	if err != nil {
		return p, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	if options.ResourceVersion != "" && options.ResourceVersion != "0" {
		return p, apierrors.NewBadRequest(
			"specifying resource version is not allowed when using continue")
	}
	p.start = token.start(c.prefix())
	if token.ResourceVersion < 0 {
		return p, nil // continue in the newest state
	}
	p.rv = token.ResourceVersion
	return p, c.server.log.waitVisible(c.http.Context(), p.rv)
}

// prefix is the common prefix of the keys of the listed objects.
func (t target) prefix() string {
	if t.namespace == "" {
		return ""
	}
	return t.namespace + "/"
}

// list answers with the objects that exist at one resourceVersion.
func (c *call) list() error {
	items, meta, err := c.selected()
	if err != nil {
		return err
	}
	c.writeList(items, meta)
	return nil
}

// selected returns the objects that a list shows.
func (c *call) selected() ([]*version, metav1.ListMeta, error) {
	options, sel, err := c.listOptions()
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	p, err := c.plan(options)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	return c.snapshot(p, sel, options.Continue != "")
}

// snapshot collects the objects of one page.
func (c *call) snapshot(p page, sel *selector,
	continued bool) ([]*version, metav1.ListMeta, error) {
	l := c.server.log
	l.mu.Lock()
	l.tickLocked(time.Now())
	l.mu.Unlock()
	l.mu.RLock()
	defer l.mu.RUnlock()
	rv := p.rv
	switch {
	case rv != 0 && rv < l.compacted:
		return nil, metav1.ListMeta{}, c.listExpired(p, continued)
	case rv == 0 && p.stale:
		rv = l.visible
	case rv == 0:
		rv = l.rv
	}
	coll := l.collectionLocked(c.resource)
	var items []*version
	if p.limit == 0 && sel.counts() {
		items = make([]*version, 0, len(coll.entries))
	}
	var count int64
	more := false
	coll.stateLocked(c.prefix(), p.start, rv, func(v *version) bool {
		count++
		if p.limit > 0 && int64(len(items)) >= p.limit {
			more = true
			return sel.counts() // otherwise it is enough to know that another page follows
		}
		if sel.matches(v) {
			items = append(items, v)
		}
		return true
	})
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(rv, 10)}
	if sel.shards != nil && c.resource.builtin && c.form == wholeForm {
		meta.ShardInfo = &metav1.ShardInfo{Selector: sel.shards.String()}
	}
	if more {
		last := items[len(items)-1]
		meta.Continue = continueToken{Version: continueVersion, ResourceVersion: rv,
			Start: strings.TrimPrefix(objectKey(last.namespace, last.name), c.prefix()) +
				"\x00"}.String()
		if sel.counts() {
			meta.RemainingItemCount = new(count - p.limit)
		}
	}
	return items, meta, nil
}

// listExpired is the error for a list of a state that is compacted. A client in the middle of a
// list gets a token, to continue in the newest state.
func (c *call) listExpired(p page, continued bool) error {
	if !continued {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired(
		"The provided continue parameter is too old to display a consistent list result. " +
			"You can start a new list without the continue parameter, or use the continue token " +
			"in this response to retrieve the " +
			"remainder of the results. Continuing with the provided token results in an " +
			"inconsistent list - objects that were " +
			"created, modified, or deleted between the time the first chunk was returned and now " +
			"may show up in the list.")
	err.ErrStatus.ListMeta.Continue = continueToken{Version: continueVersion, ResourceVersion: -1,
		Start: strings.TrimPrefix(p.start, c.prefix())}.String()
	return err
}

func (c *call) writeList(items []*version, meta metav1.ListMeta) {
	if c.form == tableForm {
		writeJSON(c.w, http.StatusOK, c.table(items, meta))
		return
	}
	head, err := c.listHead(meta)
	if err != nil {
		c.error(err)
		return
	}
	c.w.Header().Set("Content-Type", contentJSON)
	c.w.WriteHeader(http.StatusOK)
	out := bufferFor(c.w)
	defer out.free()
	out.Write(head)
	if c.form == partialForm && len(items) == 0 {
		out.WriteString("null}\n") // as real lists of metadata have it
		out.Flush()
		return
	}
	out.WriteByte('[')
	for i, v := range items {
		if i > 0 {
			out.WriteByte(',')
		}
		c.form.writeItem(out, c.resource, c.resource.show(v).encoded)
	}
	out.WriteString("]}\n")
	out.Flush()
}

// listHead is the part of a list before its items.
func (c *call) listHead(meta metav1.ListMeta) ([]byte, error) {
	var head struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Metadata   any    `json:"metadata"`
	}
	head.Kind, head.APIVersion, head.Metadata = c.resource.Kind+"List", c.resource.apiVersion(),
		meta
	switch {
	case c.form == partialForm:
		head.Kind, head.APIVersion = "PartialObjectMetadataList", metav1.SchemeGroupVersion.String()
	case !c.resource.builtin && meta.Continue == "":
		// real lists of custom kinds have it
		head.Metadata = map[string]string{"continue": "", "resourceVersion": meta.ResourceVersion}
	}
	raw, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return append(raw[:len(raw)-1], `,"items":`...), nil
}

// continueToken is the position of the next page of a list, in the format of the real server.
type continueToken struct {
	Version         string `json:"v"`
	ResourceVersion int64  `json:"rv"` // less than 0: the newest
	Start           string `json:"start"`
}

const continueVersion = "meta.k8s.io/v1"

// String returns the token as clients get it.
func (t continueToken) String() string {
	raw, err := json.Marshal(t)
	if err != nil {
		panic(err) // a struct of strings and a number can be encoded
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (t continueToken) start(prefix string) string {
	return prefix + strings.TrimPrefix(t.Start, "/")
}

func parseContinue(text string) (continueToken, error) {
	var t continueToken
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err != nil {
		return t, fmt.Errorf("continue key is not valid: %w", err)
	}
	switch {
	case t.Version != continueVersion:
		return t, fmt.Errorf("continue key is not valid: server does not recognize this encoded "+
			"version %s", t.Version)
	case t.ResourceVersion == 0:
		return t, errors.New("continue key is not valid: incorrect encoded start resourceVersion " +
			"(version meta.k8s.io/v1)")
	case t.Start == "":
		return t, errors.New(
			"continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
	}
	if rooted := "/" + strings.TrimPrefix(t.Start, "/"); path.Clean(rooted) != rooted {
		return t, fmt.Errorf("continue key is not valid: %s", t.Start)
	}
	return t, nil
}
