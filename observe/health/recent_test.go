// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/health"
)

// A program was healthy for a day and was recorded, and then something goes wrong: its finding
// comes within minutes, not after another day.
func TestFindings_AfterAHealthyDay(t *testing.T) {
	for name, row := range map[string]struct {
		every, within time.Duration // of the fault
		kind          health.FindingKind
		sentence      string
	}{
		"hot": {200 * time.Millisecond, 3 * time.Minute, health.HotKey,
			"queue settings reconciled hot \\d+ times in .*"},
		"slow": {time.Second, time.Minute, health.HandlerSlow, "handler handle of informer " +
			"configmaps takes \\d+ms per call, and took at most 20ms"},
		"idle": {time.Second, time.Minute, health.IdleUpdates, "\\d+ of the last \\d+ updates " +
			"that handler handle of informer configmaps got changed no field that this informer " +
			"keeps"},
		"resyncs": {10 * time.Second, 4 * time.Minute, health.ResyncTimer, "\\d+ of the last " +
			"\\d+ reconciles of queue settings were caused by resyncs alone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := record(t)
				page.journal.Record(48 * time.Hour)
				queue := page.newQueue("settings")
				slow := time.Duration(0)
				handler := page.newHandler("handle", informer.ResourceEventHandlerFuncs{
					UpdateFunc: func(_, obj any) {
						time.Sleep(slow)
						queue.Add(obj.(*corev1.ConfigMap).Name)
					}})
				version := 0
				update := func(key, color string) {
					before := object(key, fmt.Sprint(version))
					version++
					after := object(key, fmt.Sprint(version))
					after.Data = map[string]string{"color": color}
					if color == "" {
						after.Data = nil
					}
					handler.OnUpdate(before, after)
				}
				reconcile := func() {
					key, _ := queue.Get()
					queue.Forget(key)
					queue.Done(key)
				}
				for range 24 * 60 / 10 {
					for n := range 20 {
						update(fmt.Sprint(n), "red")
						reconcile()
					}
					time.Sleep(10 * time.Minute)
				}
				assert.Empty(t, page.Page().Findings)
				resynced := object("a", "1")
				for began := time.Now(); len(page.Page().Findings) == 0; time.Sleep(row.every) {
					if !assert.Less(t, time.Since(began), row.within) {
						return
					}
					switch name {
					case "hot":
						if version%10 == 0 {
							update("0", "red")
							reconcile()
						}
						update("hot", "red")
					case "slow":
						slow = 20 * time.Millisecond
						update("a", "red")
					case "idle":
						update("a", "")
					case "resyncs":
						handler.OnUpdate(resynced, resynced)
					}
					reconcile()
				}
				requireFinding(t, page.Page(), row.kind, row.sentence)
				time.Sleep(10 * time.Minute)
				assert.Empty(t, page.Page().Findings)
			})
		})
	}
}
