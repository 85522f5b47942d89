// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/namespaces"
	"example.com/informerstack/reflector"
)

// allSpaces are the namespaces that a process may follow. The last two have no objects.
var allSpaces = []string{"default", "kube-public", "kube-node-lease", "kube-system"}

// clusterAbove is how many namespaces of a process have a watch of their own at most.
const clusterAbove = 2

// space is a namespace for a process that follows some, or all objects of a custom resource.
type space struct {
	followed bool      // it is in the set, or the resource is served
	denied   int       // how many faults forbid it
	since    time.Time // the last change of these
	met      bool      // it was forbidden since the last quiet time
}

func (s *space) isWell() bool { return s.followed && s.denied == 0 }

// spaces are the namespaces of a process. Only the script's goroutine uses them.
type spaces struct {
	byName map[string]*space
	lists  int // that were needed since the last quiet time
	known  int // lists that were sent before
}

// newSpaces returns those of a process that begins with two namespaces, or without any.
func newSpaces(index int) *spaces {
	s := &spaces{byName: map[string]*space{}}
	for i, name := range allSpaces {
		s.byName[name] = &space{followed: i < 2 && index%2 == 0, since: time.Now()}
	}
	s.lists = len(s.names())
	return s
}

func (s *spaces) names() (names []string) {
	for _, name := range allSpaces {
		if s.byName[name].followed {
			names = append(names, name)
		}
	}
	return names
}

// space returns that of a key, or nil if the process follows all objects.
func (v view) space(key string) *space {
	if v.spaces == nil {
		return nil
	}
	if s := v.spaces.byName[namespaceOf(key)]; s != nil {
		return s
	}
	return v.spaces.byName[metav1.NamespaceAll]
}

// wasOut reports whether a process may have dropped a version of key, because it does not follow
// the namespace or may not read it, since the version was written.
func (v view) wasOut(key string, rv uint64) bool {
	s := v.space(key)
	state, _ := v.exact(key, rv)
	return s != nil && (!s.isWell() || !s.since.Before(state.seen))
}

// newOfSpaces returns an informer of some namespaces.
func (p *process) newOfSpaces(
	lw func(namespace string) reflector.ListerWatcher, options informer.Options,
) informer.SharedIndexInformer {
	of := namespaces.Options{
		Options: options, Namespaces: p.seeing.spaces.names(), ClusterAbove: clusterAbove,
	}
	of.WrapQueue = nil
	if p.tolerates() {
		of.Tolerate = namespaces.Forbidden
	}
	var made informer.SharedIndexInformer
	if p.group == alone {
		made, p.set = namespaces.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, of)
		return made
	}
	if p.seeing.onlyRed {
		of.LabelSelector = "team=red"
	}
	typed := namespaces.New[*corev1.ConfigMap](p.client.CoreV1().RESTClient(), "configmaps", of)
	p.set = typed.Set
	return typed
}

// tolerates reports whether the process does without a namespace that it may not read.
func (p *process) tolerates() bool { return p.starts%2 == 0 }

// generateSpaces makes a short script of a seed, in which the processes follow namespaces that come
// and go.
func generateSpaces(seed uint64) script {
	s := generate(seed)
	r := rand.New(rand.NewPCG(seed, 10))
	s.setups = s.setups[:min(len(s.setups), 2)]
	for i := range s.setups {
		p := &s.setups[i]
		p.queue, p.resync, p.group = "delta", "once", []string{alone, single}[r.IntN(2)]
		p.pages = []string{"whole", "pages"}[r.IntN(2)]
		p.addTrait(spaced)
		if r.IntN(2) == 0 {
			p.addTrait(noted)
		}
	}
	s.addSteps(r, "space", "space", "space", "forbid")
	return s
}

// changeSpaces is a step: a namespace comes or goes, or many do.
func (w *world) changeSpaces(p *process, s step) {
	of := p.seeing.spaces
	if !p.has(spaced) {
		return
	}
	var wanted []string
	for i, name := range allSpaces {
		is := of.byName[name].followed
		switch {
		case s.n < 32:
			is = is != (i == s.n%4)
		case s.n < 40:
			is = true
		default:
			is = s.n>>i&1 > 0
		}
		if is {
			wanted = append(wanted, name)
		}
	}
	now := time.Now()
	for name, one := range of.byName {
		switch is := slices.Contains(wanted, name); {
		case is && !one.followed:
			of.lists++
			one.followed, one.since = true, now
		case !is && one.followed:
			one.followed, one.since = false, now
		}
	}
	w.cover("namespaces change")
	if s.n%2 == 0 {
		p.set.Replace(wanted...)
		return
	}
	p.set.Remove(slices.DeleteFunc(slices.Clone(allSpaces), func(name string) bool {
		return slices.Contains(wanted, name)
	})...)
	p.set.Add(wanted...)
}

// forbid is a step: a process may not read a namespace, or watch the whole cluster, for a while.
func (w *world) forbid(p *process, s step) {
	if !p.has(spaced) {
		return
	}
	name := append(allSpaces[:2:2], metav1.NamespaceAll)[s.n%3]
	match := onlyOf(p, "list,watch")
	isOfProcess := match.If
	match.If = func(r apitest.Request) bool { return r.Namespace == name && isOfProcess(r) }
	refused := w.and(match, "forbidden namespace", nil)
	w.during(3*s.d, w.server.Faults().Fail(0, refused, errForbidden))
	if s.n%2 == 0 {
		match.Verb = "watch"
		w.server.Faults().Break(match, apitest.CloseStream)
	}
	if name != metav1.NamespaceAll {
		w.deny(p, []string{name}, 3*s.d)
	}
}

// deny notes that a process may not read namespaces for a while.
func (w *world) deny(p *process, names []string, d time.Duration) {
	if !p.has(spaced) {
		return
	}
	for _, name := range names {
		one := p.seeing.spaces.byName[name]
		one.denied, one.since, one.met = one.denied+1, time.Now(), true
		w.during(d, func() {
			one.denied--
			one.since = time.Now()
		})
	}
}

// owes reports whether the store must have what Health claims of a key: its namespace is in the
// set, and not left out, or its kind is served.
func (p *process) owes(key string) bool {
	if p.isGone() {
		return false
	}
	if p.set == nil {
		return true
	}
	return slices.ContainsFunc(p.set.Namespaces(), func(s namespaces.Status) bool {
		return s.Namespace == namespaceOf(key) && !s.LeftOut
	})
}

// checkSpaces checks what must hold at any time of a process that follows namespaces.
func (p *process) checkSpaces() {
	of := p.seeing.spaces
	if names := p.set.Names(); !slices.Equal(names, slices.Sorted(slices.Values(of.names()))) {
		p.violate(14, "%s follows the namespaces %v, want %v", p.name, names, of.names())
	}
	met := p.met || slices.ContainsFunc(allSpaces, func(name string) bool {
		return of.byName[name].met
	})
	if n := p.gate.wholeLists() - of.known; n > of.lists && !met {
		p.violate(14, "%s has listed %d times, and %d namespaces were added", p.name, n, of.lists)
	}
	if p.set.ClusterStatus().Namespaces > 0 {
		p.cover("whole cluster watched")
	}
}

// checkQuietSpaces checks the watches when all is well, and begins to count lists.
func (p *process) checkQuietSpaces(watches int) {
	of := p.seeing.spaces
	own, others := 0, 0
	for _, s := range p.set.Namespaces() {
		if s.Reflector.Phase != reflector.Watching || s.LeftOut || !s.HasSynced {
			p.violate(14, "%s: %+v", p.name, s)
		}
		if s.FromCluster {
			others = 1
		} else {
			own++
		}
	}
	if watches != own+others {
		p.violate(7, "%s has %d open watches, want %d", p.name, watches, own+others)
	}
	if own > clusterAbove && time.Since(p.set.ClusterStatus().RetryAfter) > time.Minute {
		p.violate(14, "%s has %d watches of its own: %+v", p.name, own, p.set.ClusterStatus())
	}
	of.known, of.lists = p.gate.wholeLists(), 0
	for _, one := range of.byName {
		one.met = false
	}
}
