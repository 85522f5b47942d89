// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/compat/decoding"
	"example.com/informerstack/reflector"
)

func isFaster(ctx context.Context) bool {
	client := runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(),
		corev1.SchemeGroupVersion)
	return !reflect.DeepEqual(client, decoding.Negotiator(ctx, client, nil))
}

// Each LIST and WATCH of a reflector has faster decoders, unless the environment says otherwise.
func TestDecoding_OfEachReflector(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, lw cache.ListerWatcher){
		"reflector": func(ctx context.Context, lw cache.ListerWatcher) {
			cache.NewReflector(lw, &corev1.Pod{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0).
				RunWithContext(ctx)
		},
		"informer": func(ctx context.Context, lw cache.ListerWatcher) {
			_, c := cache.NewInformerWithOptions(cache.InformerOptions{
				ListerWatcher: lw, ObjectType: &corev1.Pod{},
			})
			c.RunWithContext(ctx)
		},
		"shared informer": func(ctx context.Context, lw cache.ListerWatcher) {
			cache.NewSharedInformer(lw, &corev1.Pod{}, 0).RunWithContext(ctx)
		},
	} {
		for value, faster := range map[string]bool{"": true, "client-go": false, "wire": true} {
			t.Setenv(decoding.Environment, value)
			for _, streams := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					ctx, stop := context.WithCancel(t.Context())
					var lists, watches []bool
					lw := &cache.ListWatch{
						ListWithContextFunc: func(
							ctx context.Context, _ metav1.ListOptions,
						) (runtime.Object, error) {
							lists = append(lists, isFaster(ctx))
							return &corev1.PodList{}, nil
						},
						WatchFuncWithContext: func(
							ctx context.Context, _ metav1.ListOptions,
						) (watch.Interface, error) {
							watches = append(watches, isFaster(ctx))
							w := watch.NewFake()
							context.AfterFunc(ctx, w.Stop)
							return w, nil
						},
					}
					if streams {
						go start(ctx, lw)
					} else {
						go start(ctx, cache.ToListWatcherWithWatchListSemantics(lw, refuser{}))
					}
					synctest.Wait()
					stop()
					synctest.Wait()
					require.Equal(t, []bool{faster}, watches, name)
					if !streams {
						require.Equal(t, []bool{faster}, lists, name)
					}
				})
			}
		}
	}
}

// streams is a ListerWatcher that decodes by itself.
type streams struct {
	*cache.ListWatch
	refuser
	streamed bool
}

func (s *streams) ListStream(
	context.Context, metav1.ListOptions, func(runtime.Object) error,
) (metav1.ListMeta, error) {
	s.streamed = true
	return metav1.ListMeta{}, nil
}

var _ reflector.StreamLister = &streams{}

// A ListerWatcher that hands its items over one by one still does.
func TestDecoding_LeavesStreamListers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		lw := &streams{ListWatch: &cache.ListWatch{
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
				return watch.NewFake(), nil
			},
		}}
		go cache.NewSharedInformer(lw, &corev1.Pod{}, 0).RunWithContext(ctx)
		synctest.Wait()
		stop()
		synctest.Wait()
		require.True(t, lw.streamed)
	})
}
