// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/realserver"
	"example.com/informerstack/realserver/cluster"
)

// maps is what the benchmarks use of a client.
type maps struct {
	create, get, update, remove func(context.Context, *corev1.ConfigMap) error
	list                        func(context.Context) (int, error)
}

func ofClientGo(c kubernetes.Interface) maps {
	m := c.CoreV1().ConfigMaps("default")
	into := func(obj, got *corev1.ConfigMap, err error) error {
		if err == nil {
			*obj = *got
		}
		return err
	}
	return maps{
		create: func(ctx context.Context, obj *corev1.ConfigMap) error {
			got, err := m.Create(ctx, obj, metav1.CreateOptions{})
			return into(obj, got, err)
		},
		get: func(ctx context.Context, obj *corev1.ConfigMap) error {
			got, err := m.Get(ctx, obj.Name, metav1.GetOptions{})
			return into(obj, got, err)
		},
		update: func(ctx context.Context, obj *corev1.ConfigMap) error {
			got, err := m.Update(ctx, obj, metav1.UpdateOptions{})
			return into(obj, got, err)
		},
		remove: func(ctx context.Context, obj *corev1.ConfigMap) error {
			return m.Delete(ctx, obj.Name, metav1.DeleteOptions{})
		},
		list: func(ctx context.Context) (int, error) {
			got, err := m.List(ctx, metav1.ListOptions{})
			return len(got.Items), err
		},
	}
}

func ofControllerRuntime(c client.Client) maps {
	return maps{
		create: func(ctx context.Context, obj *corev1.ConfigMap) error {
			return c.Create(ctx, obj)
		},
		get: func(ctx context.Context, obj *corev1.ConfigMap) error {
			return c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		},
		update: func(ctx context.Context, obj *corev1.ConfigMap) error {
			return c.Update(ctx, obj)
		},
		remove: func(ctx context.Context, obj *corev1.ConfigMap) error {
			return c.Delete(ctx, obj)
		},
		list: func(ctx context.Context) (int, error) {
			var got corev1.ConfigMapList
			err := c.List(ctx, &got, client.InNamespace("default"))
			return len(got.Items), err
		},
	}
}

func ofServer(b *testing.B, config *rest.Config) maps {
	config.QPS = -1
	c, err := kubernetes.NewForConfig(config)
	require.NoError(b, err)
	return ofClientGo(c)
}

// kinds are the servers and what replaces them. Each starts one, which is stopped with stop.
var kinds = []struct {
	name  string
	start func(b *testing.B) (m maps, stop func())
}{
	{"controller-runtime-fake", func(*testing.B) (maps, func()) {
		return ofControllerRuntime(crfake.NewClientBuilder().Build()), func() {}
	}},
	{"client-go-fake", func(*testing.B) (maps, func()) {
		return ofClientGo(fake.NewClientset()), func() {}
	}},
	{"apitest", func(b *testing.B) (maps, func()) {
		server := apitest.Start(b, apitest.Options{})
		return ofServer(b, server.Config()), server.Close
	}},
	{"realserver", func(b *testing.B) (maps, func()) {
		c, err := cluster.Start(b.Context(), cluster.Options{})
		require.NoError(b, err)
		return ofServer(b, c.Config(cluster.AdminToken)),
			func() { require.NoError(b, c.Stop()) }
	}},
	{"envtest", func(b *testing.B) (maps, func()) {
		// its own programs have to be downloaded; these are the same two, compiled here
		programs, err := cluster.Build(b.Context(), "", io.Discard)
		require.NoError(b, err)
		ctrl.SetLogger(klog.Background())
		env := &envtest.Environment{BinaryAssetsDirectory: programs,
			ControlPlaneStartTimeout: 3 * time.Minute}
		config, err := env.Start()
		require.NoError(b, err)
		return ofServer(b, config), func() { require.NoError(b, env.Stop()) }
	}},
}

func eachKind(b *testing.B, run func(b *testing.B, start func(b *testing.B) (maps, func()))) {
	for _, kind := range kinds {
		b.Run("server="+kind.name, func(b *testing.B) { run(b, kind.start) })
	}
}

// From nothing to the first answer.
func BenchmarkStart(b *testing.B) {
	first := func(b *testing.B, start func(b *testing.B) (maps, func())) {
		for b.Loop() {
			m, stop := start(b)
			_, err := m.list(b.Context())
			require.NoError(b, err)
			b.StopTimer()
			stop()
			b.StartTimer()
		}
	}
	eachKind(b, first)
	shared := func(b *testing.B) (maps, func()) {
		return ofServer(b, realserver.Start(b, realserver.Options{})), func() {}
	}
	b.Run("server=realserver-shared", func(b *testing.B) {
		shared(b) // another test has started it
		first(b, shared)
	})
}

// object returns a ConfigMap of a kilobyte.
func object(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("bench-%04d", i)},
		Data:       map[string]string{"text": strings.Repeat("x", 1000)},
	}
}

// One client makes four requests for an object, one after the other.
func BenchmarkRequests(b *testing.B) {
	const objects = 100
	eachKind(b, func(b *testing.B, start func(b *testing.B) (maps, func())) {
		m, stop := start(b)
		defer stop()
		ctx := b.Context()
		for b.Loop() {
			for i := range objects {
				obj := object(i)
				require.NoError(b, m.create(ctx, obj))
				require.NoError(b, m.get(ctx, obj))
				obj.Data["more"] = "y"
				require.NoError(b, m.update(ctx, obj))
				require.NoError(b, m.remove(ctx, obj))
			}
		}
		b.ReportMetric(float64(4*objects*b.N)/b.Elapsed().Seconds(), "requests/s")
	})
}

// A list of a thousand objects, and the memory of a server that has them: of the heap in this
// process, or of the server's processes.
func BenchmarkList(b *testing.B) {
	const objects = 1000
	eachKind(b, func(b *testing.B, start func(b *testing.B) (maps, func())) {
		before := heap()
		m, stop := start(b)
		defer stop()
		ctx := b.Context()
		for i := range objects {
			obj := object(i)
			require.NoError(b, m.create(ctx, obj))
			defer func() { require.NoError(b, m.remove(context.Background(), obj)) }()
		}
		used := children(b)
		if used == 0 {
			used = heap() - before
		}
		for b.Loop() {
			got, err := m.list(ctx)
			require.NoError(b, err)
			require.GreaterOrEqual(b, got, objects)
		}
		b.ReportMetric(float64(used)/(1<<20), "MiB")
	})
}

func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers have released
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// children returns the resident memory of this process's child processes, on Linux.
func children(b *testing.B) (sum int) {
	files, err := filepath.Glob("/proc/[0-9]*/status")
	require.NoError(b, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil { // it has ended
			continue
		}
		parent, memory := 0, 0
		for line := range strings.Lines(string(text)) {
			words := append(strings.Fields(line), "0")
			number, _ := strconv.Atoi(words[1])
			switch words[0] {
			case "PPid:":
				parent = number
			case "VmRSS:":
				memory = number << 10
			}
		}
		if parent == os.Getpid() {
			sum += memory
		}
	}
	return sum
}
