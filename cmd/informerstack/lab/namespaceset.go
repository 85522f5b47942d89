// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/namespaces"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/reflector"
)

// firstNamespace is the only one that an informer of namespaces follows at its start.
const firstNamespace = "default"

var (
	errNoNamespaces = errors.New("the informer follows all namespaces")
	errNoQueue      = errors.New("the laboratory does not see the queue of several namespaces")
)

// NewInformer returns the informer of the pipeline that is built. lw returns what lists and watches
// a namespace; "" is all. With Settings.ByNamespace, it is an informer of a set of namespaces,
// which the page changes, and tolerates those that are forbidden. The content of its queue is not
// shown.
func (l *Lab) NewInformer(
	lw func(namespace string) reflector.ListerWatcher, example runtime.Object,
	options informer.Options,
) informer.SharedIndexInformer {
	var set *namespaces.Set
	var objects informer.SharedIndexInformer
	if l.restarts.get().ByNamespace {
		options.WrapQueue, options.InOrder = nil, false
		objects, set = namespaces.NewSharedIndexInformer(lw, example, namespaces.Options{
			Options: options, Namespaces: []string{firstNamespace},
			Tolerate: namespaces.Forbidden,
		})
	} else {
		objects = informer.NewSharedIndexInformer(lw(""), example, options)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set = set
	return objects
}

func (l *Lab) namespaceSet() *namespaces.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set
}

// setNamespaces changes the set. The queue may have to wait for the time control, so it does not.
func (l *Lab) setNamespaces(names []string) error {
	set := l.namespaceSet()
	if set == nil {
		return errNoNamespaces
	}
	for _, name := range names {
		if name == "" {
			return errors.New("a namespace has no name")
		}
	}
	go set.Replace(names...)
	return nil
}

// forbid makes the server refuse all requests for the resource in a namespace; "" ends that.
func (l *Lab) forbid(namespace string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.permit != nil {
		l.permit()
		l.permit = nil
	}
	if namespace == "" {
		return nil
	}
	resource := schema.ParseGroupResource(l.options.Resource)
	l.permit = l.options.Server.Faults().Fail(0,
		apitest.Match{Resource: l.options.Resource, Namespace: namespace},
		apierrors.NewForbidden(resource, "", errors.New("no role allows it")))
	return nil
}

// describeNamespaces adds the namespaces in the place of the one reflector.
func (v *ReflectorView) describeNamespaces(set *namespaces.Set) {
	if set == nil {
		return
	}
	v.From, v.Reason, v.RV = "", "", ""
	v.Namespaces = []NamespaceView{}
	for _, s := range set.Namespaces() {
		view := NamespaceView{
			Name: printable.Short(s.Namespace), Phase: string(s.Reflector.Phase),
			RV: s.ResourceVersion, Synced: s.HasSynced, LeftOut: s.LeftOut,
		}
		if s.Reflector.LastError != nil && s.Reflector.ConsecutiveFailures > 0 {
			view.Error = printable.Short(s.Reflector.LastError.Error())
		}
		v.Namespaces = append(v.Namespaces, view)
	}
}

// storedOf returns the version up to which the store has the changes of a key, and whether the
// informer follows it.
func (f Frame) storedOf(key string) (version float64, isFollowed bool) {
	if f.Reflector.Namespaces == nil {
		version, _ = numberOf(f.Store.RV)
		return version, true
	}
	namespace, _, _ := strings.Cut(key, "/")
	for _, n := range f.Reflector.Namespaces {
		if n.Name == namespace && !n.LeftOut {
			version, _ = numberOf(n.RV)
			return version, true
		}
	}
	return 0, false
}
