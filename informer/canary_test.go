// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/informerstack/reflector"
)

const canary = "canary-51d2ab"

// canarySecret is an object that no log, error or status may quote.
func canarySecret(namespace, name, resourceVersion string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, ResourceVersion: resourceVersion,
			Annotations: map[string]string{"last-applied": canary},
		},
		Data: map[string][]byte{"password": []byte(canary)},
	}
}

// At the highest log level, and whatever fails, no content of an object is logged, nor is it in an
// error or a status. Odd names are keys like others.
func TestLogs_HaveNoContent(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		t.Run(fmt.Sprintf("inOrder=%v", inOrder), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { logNoContent(t, inOrder) })
		})
	}
}

func logNoContent(t *testing.T, inOrder bool) {
	config := ktesting.NewConfig(ktesting.Verbosity(10), ktesting.BufferLogs(true))
	logger := ktesting.NewLogger(ktesting.NopTL{}, config)
	defer func(handlers []utilruntime.ErrorHandler) {
		utilruntime.ErrorHandlers = handlers
	}(utilruntime.ErrorHandlers)
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(ctx context.Context, err error, msg string, keysAndValues ...any) {
			klog.FromContext(ctx).Error(err, msg, keysAndValues...)
		},
	}
	var events *watch.RaceFreeFakeWatcher
	lw := listFirst{&reflector.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.SecretList{
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
				Items:    []corev1.Secret{*canarySecret("ns", "listed", "1")},
			}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			events = watch.NewRaceFreeFake()
			return events, nil
		},
	}}
	failed := false
	var errs []error
	secrets := NewSharedIndexInformer(lw, &corev1.Secret{}, Options{
		InOrder: inOrder,
		Reflector: reflector.Options{
			Transform: func(obj any) (any, error) {
				if secret := obj.(*corev1.Secret); secret.Name == "untransformed" && !failed {
					failed = true
					return nil, errors.New("transform failed")
				}
				return obj, nil
			},
			WatchErrorHandler: func(ctx context.Context, r *reflector.Reflector, err error) {
				errs = append(errs, err)
				reflector.DefaultWatchErrorHandler(ctx, r, err)
			},
		},
	})
	_, err := secrets.AddEventHandlerWithOptions(ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if obj.(*corev1.Secret).Name == "panics" {
				panic("handler panics")
			}
		},
	}, HandlerOptions{SkipPanics: true, Logger: &logger})
	require.NoError(t, err)
	stop := background(func(ctx context.Context) { secrets.Run(klog.NewContext(ctx, logger)) })
	synctest.Wait()
	for i, name := range []string{"a", "", "a/b", "\x1b[2J\n", "panics"} {
		for _, namespace := range []string{"", "ns", "ns/ns"} {
			secret := canarySecret(namespace, name, fmt.Sprint(2+i))
			events.Add(secret)
			events.Modify(secret)
			synctest.Wait()
		}
	}
	events.Delete(canarySecret("ns", "unknown", "20"))
	events.Action("RENAMED", canarySecret("ns", "a", "21"))
	events.Add(&corev1.ConfigMap{Data: map[string]string{"password": canary}})
	events.Action(watch.Bookmark, canarySecret("", "", "22"))
	events.Add(canarySecret("ns", "untransformed", "23"))
	time.Sleep(time.Minute)
	synctest.Wait()
	events.Error(&metav1.Status{Status: metav1.StatusFailure, Message: "an error", Code: 500})
	time.Sleep(time.Minute)
	synctest.Wait()
	status := fmt.Sprintf("%+v %v", secrets.(*sharedIndexInformer).Status(), errs)
	stop()
	log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	for _, text := range []string{"transform failed", "handler panics", "Unexpected watch event"} {
		assert.Contains(t, log, text)
	}
	for _, written := range []string{log, status} {
		assert.NotContains(t, written, canary)
		assert.NotContains(t, written, base64.StdEncoding.EncodeToString([]byte(canary)))
		assert.NotContains(t, written, fmt.Sprint([]byte(canary)))
	}
}
