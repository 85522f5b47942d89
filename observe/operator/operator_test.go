// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/observe/operator"
	"example.com/informerstack/store"
)

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil // one of them waits for a time outside the bubbles
	os.Exit(m.Run())
}

// process is one process with a controller of ConfigMaps.
type process struct {
	*operator.Operator
	saw  []string
	stop func()
}

// start starts a process. With an identity, it takes part in an election.
func start(t *testing.T, server *testserver.Server, identity string) *process {
	options := operator.Options{Identity: identity}
	if identity != "" {
		options.Lease = server.Config()
	}
	o, err := operator.New("test", options)
	require.NoError(t, err)
	p := &process{Operator: o}
	maps, err := operator.NewInformer[*corev1.ConfigMap](o, server.Client(), "configmaps",
		informer.Options{})
	require.NoError(t, err)
	ctrl, err := operator.NewController(o, "maps",
		func(_ context.Context, name store.ObjectName) (controller.Result, error) {
			p.saw = append(p.saw, name.String())
			return controller.Result{}, nil
		}, controller.Options[store.ObjectName]{
			WaitFor: []controller.Synced{maps.HasSyncedChecker()},
		})
	require.NoError(t, err)
	_, err = maps.AddEventHandler(ctrl.Handler(store.DeletionHandlingObjectToName))
	require.NoError(t, err)
	p.stop = testserver.Run(t.Context(), maps.Run,
		func(ctx context.Context) { assert.NoError(t, ctrl.Run(ctx)) })
	t.Cleanup(p.stop)
	return p
}

// pass lets time pass, and then everything come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (p *process) get(path string) (code int, body string) {
	answer := httptest.NewRecorder()
	p.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost"+path, nil))
	return answer.Code, answer.Body.String()
}

func TestOperator_ServesMetricsHealthAndThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, apitest.Options{})
		server.CreateMap("a")
		server.Faults().Add(apitest.Fault{Match: apitest.Match{Resource: "configmaps"},
			Err: apierrors.NewServiceUnavailable("not yet")})
		p := start(t, server, "")
		pass(time.Second)
		assert.Empty(t, p.saw, "the controller waits for the informer")
		code, body := p.get("/readyz")
		assert.Equal(t, 500, code)
		assert.Contains(t, body, "not yet")
		assert.Contains(t, body, "controller-maps failed")

		server.Faults().Clear()
		pass(10 * time.Second)
		assert.Equal(t, []string{"default/a"}, p.saw)
		for _, path := range []string{"/readyz", "/healthz"} {
			code, body = p.get(path)
			assert.Equal(t, 200, code, body)
		}
		_, body = p.get("/metrics")
		for _, line := range []string{
			`informer_objects{group="",name="test",resource="configmaps",version="v1"} 1`,
			`controller_runtime_reconcile_total{controller="maps",result="success"} 1`,
			`workqueue_adds_total{name="maps"} 1`,
			"go_goroutines ",
		} {
			assert.True(t, strings.Contains(body, "\n"+line), line)
		}
		_, body = p.get("/debug/informers")
		assert.Contains(t, body, "configmaps")
		assert.Contains(t, body, "maps")
	})
}

func TestOperator_AStaleCacheIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, apitest.Options{})
		p := start(t, server, "only") // the Lease's writes are the progress that bookmarks report
		pass(time.Hour)
		code, body := p.get("/readyz")
		assert.Equal(t, 200, code, body)
		server.Faults().Add(apitest.Fault{Match: apitest.Match{Resource: "configmaps"},
			Err: apierrors.NewServiceUnavailable("not today")})
		server.Faults().Break(apitest.Match{}, apitest.CloseStream)
		pass(operator.DefaultFreshWithin + time.Minute)
		code, body = p.get("/readyz")
		assert.Equal(t, 500, code)
		assert.Contains(t, body, "not today")
	})
}

// One of two processes reconciles; both are ready. When it stops, the other has a warm cache.
func TestOperator_OneProcessLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, apitest.Options{})
		first := start(t, server, "first")
		pass(time.Second)
		second := start(t, server, "second")
		pass(time.Minute)
		server.CreateMap("a")
		pass(time.Minute)
		assert.Equal(t, []string{"default/a"}, first.saw)
		assert.Empty(t, second.saw)
		for _, p := range []*process{first, second} {
			code, body := p.get("/readyz")
			assert.Equal(t, 200, code, body)
			code, body = p.get("/healthz/lease-test-maps")
			assert.Equal(t, 200, code, body)
		}
		_, body := first.get("/metrics")
		assert.True(t, strings.Contains(body,
			"\nleader_election_master_status{name=\"test-maps\"} 1"))
		first.stop()
		server.ForgetRequests()
		pass(5 * time.Second)
		assert.Equal(t, []string{"default/a"}, second.saw, "the lease was released")
		for _, request := range server.Requests(apitest.Match{}) {
			assert.NotEqual(t, "list", request.Verb)
		}
	})
}

// A resource that may not be read keeps back the controller that reads it, and no other.
func TestOperator_AForbiddenResourceKeepsBackNoOtherController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, apitest.Options{})
		server.CreateMap("a")
		server.Faults().Add(apitest.Fault{Match: apitest.Match{Resource: "secrets"},
			Err: apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("no role"))})
		o, err := operator.New("test", operator.Options{})
		require.NoError(t, err)
		secrets, err := operator.NewInformer[*corev1.Secret](o, server.Client(), "secrets",
			informer.Options{})
		require.NoError(t, err)
		maps, err := operator.NewInformer[*corev1.ConfigMap](o, server.Client(), "configmaps",
			informer.Options{})
		require.NoError(t, err)
		var saw []string
		ctrl, err := operator.NewController(o, "maps",
			func(_ context.Context, name store.ObjectName) (controller.Result, error) {
				saw = append(saw, name.String())
				return controller.Result{}, nil
			}, controller.Options[store.ObjectName]{
				WaitFor: []controller.Synced{maps.HasSyncedChecker()},
			})
		require.NoError(t, err)
		_, err = maps.AddEventHandler(ctrl.Handler(store.DeletionHandlingObjectToName))
		require.NoError(t, err)
		stop := testserver.Run(t.Context(), maps.Run, secrets.Run,
			func(ctx context.Context) { assert.NoError(t, ctrl.Run(ctx)) })
		t.Cleanup(stop)
		pass(time.Minute)
		assert.Equal(t, []string{"default/a"}, saw)
		answer := httptest.NewRecorder()
		o.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/readyz", nil))
		assert.Equal(t, 500, answer.Code)
		assert.Contains(t, answer.Body.String(), "informer-secrets failed")
	})
}

func TestOperator_Mistakes(t *testing.T) {
	registry := prometheus.NewRegistry()
	o, err := operator.New("test", operator.Options{Registry: registry})
	require.NoError(t, err)
	_, err = operator.New("test", operator.Options{Registry: registry})
	require.ErrorContains(t, err, "make operator test: ")

	idle := func(context.Context, string) (controller.Result, error) {
		return controller.Result{}, errors.ErrUnsupported
	}
	_, err = operator.NewController(o, "twice", idle, controller.Options[string]{})
	require.NoError(t, err)
	_, err = operator.NewController(o, "twice", idle, controller.Options[string]{})
	require.ErrorContains(t, err, "make controller twice: ")

	client := testserver.New(t, apitest.Options{}).Client()
	_, err = operator.NewInformer[*corev1.Secret](o, client, "secrets", informer.Options{})
	require.NoError(t, err)
	_, err = operator.NewInformer[*corev1.Secret](o, client, "secrets", informer.Options{})
	require.ErrorContains(t, err, "make informer of secrets: ")

	elects, err := operator.New("test", operator.Options{Lease: &rest.Config{Host: "::"}})
	require.NoError(t, err)
	for range 2 { // the name is free again
		_, err = operator.NewController(elects, "c", idle, controller.Options[string]{})
		require.ErrorContains(t, err, "make leases lock default/test-c: ")
	}
	elects, err = operator.New("test", operator.Options{Lease: &rest.Config{}})
	require.NoError(t, err)
	for range 2 { // the election would fail for ever, in a process that is ready
		_, err = operator.NewController(elects, "Maps/v1", idle, controller.Options[string]{})
		require.ErrorContains(t, err, `make controller Maps/v1: name of Lease "test-Maps/v1": `)
	}
}
