// SPDX-License-Identifier: Apache-2.0

// Package apitest is a Kubernetes API server in memory, for tests and demonstrations.
//
//	[apitest] -> reflector -> deltafifo -> informer -> handlers -> workqueue -> controller
//	    ^-------------------------------- writes -----------------------------------'
//
// In a test, call the function [Start], and make a client of [Server.Config]. In other programs,
// make a [Server] with [NewServer], and call its method Start, or StartPipe to stay within the
// process. Load, Create, Update and Delete change objects directly. [Server.Faults] makes requests
// and watches fail.
//
// Its one idea is the revision log: every write of any object takes the next resourceVersion, a
// list shows the state at one resourceVersion, and a watch from N is the log after N. The answers
// follow kube-apiserver's, including the texts of errors; docs/reports/apitest.md says how far.
// Faults (failures, cut streams, expired versions, a replica that lags behind) happen on demand or
// from a seed.
//
// Read resource.go and object.go (the data), log.go and compact.go (the log), write.go, prepare.go,
// validate.go, delete.go, managed.go, admission.go, terminate.go and garbage.go (the effects of a
// write), definition.go, schema.go and scale.go (custom kinds), then server.go, route.go, serve.go,
// handlers.go, decode.go, patch.go, list.go and watch.go (the requests), action.go (those that
// store nothing), user.go, token.go, review.go, grant.go and certificate.go (the permissions), and
// faults.go. The packages in internal need no state of a server: builtin (the values of built-in
// kinds), patch, access (users and roles), webhook, table and openapi (for kubectl), and frontend
// (connections).
//
// There are no kubelets and no controllers: pods are not scheduled, and deleted objects have no
// grace period. The objects in a deleted namespace are deleted; the dependents of a deleted owner
// stay, unless Options.GarbageCollection is set. Values of built-in kinds are defaulted and
// validated beyond their metadata only with Options.BuiltinRules, and those of custom kinds only
// with Options.Schemas. Admission is the existence of the namespace, Options.Admission, and
// webhooks. Unknown fields are kept, unless Options.Scheme knows the type or Options.Schemas the
// schema. There are no subresources but status, scale, approval, binding, eviction, token, and that
// of namespaces, and no conversion webhooks. Every user may do everything, unless Options.RBAC is
// set. Answers are JSON, never compressed. The two kinds of events are stored apart.
//
// Goroutines: one per connection, of net/http, from Start or StartPipe on, and with
// Options.GarbageCollection one from NewServer on; Close ends them and waits for them. Locking: the
// log's mutex guards all state, and no network call is made under it. A Server may be used by any
// number of goroutines.
//
// To see it work: go test -v -run 'Story|Example' ./apitest
package apitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/apitest/internal/builtin"
	"example.com/informerstack/apitest/internal/frontend"
	"example.com/informerstack/apitest/internal/table"
)

// Options configure a Server. The zero value is a useful server.
type Options struct {
	// Admission is asked about the writes of requests, before the webhooks.
	Admission []AdmissionHook

	// Resources are served besides the built-in kinds.
	Resources []Resource

	// Schemas, if set, makes the server follow the schemas of CustomResourceDefinitions: it refuses
	// definitions that a real server refuses, and prunes, defaults and validates objects. Otherwise
	// any value is stored, and the writer of a definition with a schema gets a warning.
	Schemas Schemas

	// Scheme, if set, teaches the server the Go types of the kinds, usually
	// k8s.io/client-go/kubernetes/scheme.Scheme. It then reads protobuf bodies, which client-go's
	// typed clients send by default; reports unknown and mistyped fields and drops them; and
	// merges lists by the tags of these types instead of client-go's. It answers in JSON in any
	// case.
	Scheme *runtime.Scheme

	// Address is where Start listens. "" means a free port on 127.0.0.1.
	Address string

	// AnyNamespace allows objects in namespaces that do not exist. Otherwise there are default,
	// kube-system, kube-public and kube-node-lease, and creating an object elsewhere is answered
	// with 404, as by a real server.
	AnyNamespace bool

	// BuiltinRules fills in the defaults of built-in kinds, and refuses the values that a real
	// server refuses, for the fields that docs/reports/apitest.md names. Without it, objects are
	// stored as they are sent.
	BuiltinRules bool

	// BookmarkInterval is the time between two bookmarks of a watch. 0 means a minute, as for a
	// real server.
	BookmarkInterval time.Duration

	// Old versions can be read for at least CompactInterval; after twice that time they are gone. 0
	// means five minutes, as for a real server; less than 0 keeps all versions.
	CompactInterval time.Duration

	// GarbageCollection deletes the objects whose owners are gone and the dependents of owners that
	// are deleted with the policy Foreground, and releases those of the policy Orphan, as a
	// cluster's garbage collector does. It happens in a goroutine, a moment after the write that
	// makes it due, until Close. A server for a synctest bubble must be made in the bubble then.
	GarbageCollection bool

	// HistoryLen bounds the number of events that are kept for watches. 0 means 100,000; less than
	// 0 means no bound.
	HistoryLen int

	// ManagedFields keeps the managed fields of every object from its creation on, as a real server
	// does. Otherwise they begin with the first server-side apply of the object. A write of an
	// object with managed fields takes several times as long.
	ManagedFields bool

	// NoShards ignores ListOptions.ShardSelector: lists and watches are of the whole collection, as
	// from a server without the feature gate ShardedListAndWatch (alpha in Kubernetes 1.36).
	NoShards bool

	// RBAC refuses the requests of users without a role that allows them. The roles are the Role,
	// ClusterRole, RoleBinding and ClusterRoleBinding objects in the server. A request is of an
	// administrator unless it impersonates a user, or has the token of a service account. Without
	// it, every user may do everything.
	RBAC bool

	// MaxBodyBytes bounds the bodies of requests. 0 means 3 MiB, as for a real server.
	MaxBodyBytes int64
}

const (
	defaultBookmarkInterval = time.Minute
	defaultCompactInterval  = 5 * time.Minute
	defaultHistoryLen       = 100_000
	defaultMaxBodyBytes     = 3 << 20
)

// Server is a Kubernetes API server in memory. It is an http.Handler; Start and StartPipe serve it.
type Server struct {
	// URL is the base of the server's addresses, without a trailing slash. Start and StartPipe set
	// it.
	URL string

	options     Options
	log         *revisionLog
	codecs      *codecs // nil without a scheme
	namespaces  *Resource
	definitions *Resource
	faults      *Faults
	requests    requestLog

	frontend frontend.Frontend
	wg       sync.WaitGroup // requests being served
	done     chan struct{}  // closed by Close

	mu      sync.Mutex
	closed  bool
	streams map[*stream]struct{} // the open watches
}

// NewServer returns a server that is not reachable yet. It panics if Options.Resources has a
// resource without version, kind or plural.
func NewServer(options Options) *Server {
	orDefault(&options.BookmarkInterval, defaultBookmarkInterval)
	orDefault(&options.CompactInterval, defaultCompactInterval)
	orDefault(&options.HistoryLen, defaultHistoryLen)
	orDefault(&options.MaxBodyBytes, defaultMaxBodyBytes)
	s := &Server{
		options: options,
		log:     newRevisionLog(options.HistoryLen),
		streams: map[*stream]struct{}{},
		done:    make(chan struct{}),
	}
	s.log.marks = marks{interval: options.CompactInterval, at: time.Now()}
	s.faults = newFaults(s)
	if options.Scheme != nil {
		s.codecs = newCodecs(options.Scheme)
	}
	var rules map[string]*builtin.Rules
	if options.BuiltinRules {
		rules = builtin.All()
	}
	for _, r := range builtins() {
		r.rules = rules[r.Plural+"."+r.Group]
		s.log.registerLocked(r, r)
	}
	s.namespaces = s.log.resources.find("", "v1", "namespaces")
	s.definitions = s.log.resources.find(definitionGroup, "v1", "customresourcedefinitions")
	if options.Schemas != nil {
		s.definitions.schema = options.Schemas.Definitions()
	}
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		obj := &object{fields: map[string]json.RawMessage{"spec": json.RawMessage(
			`{"finalizers":["kubernetes"]}`)}}
		obj.meta.Name = name
		if _, err := s.create(target{resource: s.namespaces, name: name}, obj,
			write{direct: true}); err != nil {
			// a broken invariant of this package
			panic(fmt.Sprintf("create namespace %s: %v", name, err))
		}
	}
	if options.RBAC {
		s.createRoles()
	}
	if options.GarbageCollection {
		s.log.collector = newCollector(s)
		s.wg.Go(s.log.collector.run)
	}
	for _, r := range options.Resources {
		if err := s.Register(r); err != nil {
			panic(err.Error())
		}
	}
	return s
}

func orDefault[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// Register serves one more kind. It fails if the resource is incomplete, or its group, version and
// plural are served already.
func (s *Server) Register(r Resource) error {
	types := customTypes(r.GroupVersionKind().GroupKind(), map[string]string{r.Version: ""})
	r.traits = traits{table: table.Custom(nil), types: types}
	if err := r.validate(); err != nil {
		return err
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.resources.find(r.Group, r.Version, r.Plural) != nil {
		return fmt.Errorf("register resource %s in %s: served already", r.Plural, r.apiVersion())
	}
	s.log.registerLocked(&r, &r)
	return nil
}

// Faults returns the controls that make the server fail.
func (s *Server) Faults() *Faults { return s.faults }

// Start serves on a free port of the loopback interface until Close. It answers a request with 403
// unless its Host is an IP address, localhost or a name under .localhost, and if its Origin or its
// Sec-Fetch-Site is that of a web page elsewhere: without these checks, any page that is open in a
// browser on this machine could read or write objects.
func (s *Server) Start() error {
	address := cmp.Or(s.options.Address, "127.0.0.1:0")
	listen := func() (net.Listener, error) { return net.Listen("tcp", address) }
	return s.start(forPrograms(s), listen, (&net.Dialer{}).DialContext)
}

// StartPipe serves on connections that never leave the process, so that client, transport and
// server can live in one testing/synctest bubble: it, Close, and every use of Client or Transport
// belong inside the bubble.
func (s *Server) StartPipe() error {
	pipe := frontend.NewPipe()
	return s.start(s, pipe.Open, pipe.Dial)
}

func (s *Server) start(
	handler http.Handler, listen func() (net.Listener, error), dial frontend.DialFunc,
) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errors.New("start server: it is closed")
	}
	url, err := s.frontend.Open(handler, listen, dial)
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	s.URL = url
	return nil
}

// Close ends every request and connection, and waits until they have ended. It may be called more
// than once. The stored objects can still be read with Get and List.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	s.mu.Unlock()
	s.frontend.Close()
	s.wg.Wait()
}

// Client returns an http.Client that reaches the server.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// Transport returns the transport that reaches the server, for rest.Config.Transport. Every call
// returns the same one; it is nil before Start or StartPipe. Close closes its idle connections.
func (s *Server) Transport() *http.Transport { return s.frontend.Transport() }

// ServeHTTP serves one request. A closed server answers 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		writeError(w, apierrors.NewServiceUnavailable("the server is closed"))
		return
	}
	defer s.wg.Done()
	s.serve(w, r)
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}
