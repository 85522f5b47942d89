// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
)

func TestCommand_WritesChangeTheServer(t *testing.T) {
	story(t, func(w *world) {
		assert.Equal(t, 2, w.frame().Server.Objects)
		w.mustDo(`{"do":"create","key":"default/c"}`)
		f := w.frame()
		assert.Equal(t, 3, f.Server.Objects)
		assert.Equal(t, 3, f.Store.Objects)
		assert.Equal(t, f.Server.RV, f.Store.Items[2].RV)
		w.mustDo(`{"do":"change","key":"default/c"}`)
		w.mustDo(`{"do":"delete","key":"default/a"}`)
		f = w.frame()
		log := f.Server.Log
		assert.Equal(t, "MODIFIED", log[len(log)-2].Type)
		assert.Equal(t, ServerEvent{f.Server.RV, "DELETED", "default/a"}, log[len(log)-1])
		assert.Equal(t, "OnDelete", f.Log.Items[len(f.Log.Items)-1].What)
		assert.NotEmpty(t, w.do(`{"do":"delete","key":"default/none"}`))
	})
}

// Numbers that no duration can hold are refused, as are all beyond the limits.
func TestCommand_HostileNumbers(t *testing.T) {
	story(t, func(w *world) {
		for _, command := range []string{
			`{"do":"mode","mode":"slow","delayMs":1e300}`,
			`{"do":"mode","mode":"slow","delayMs":-1e300}`,
			`{"do":"handler","name":"controller","delayMs":1e300}`,
			`{"do":"settings","workMs":1e300}`,
			`{"do":"settings","workMs":-1e300}`,
			`{"do":"settings","workers":1000000000}`,
			`{"do":"workload","rate":1e300}`,
			`{"do":"workload","rate":-1e-300}`,
			`{"do":"workload","objects":1000000000}`,
		} {
			assert.Contains(t, w.do("%s", command), "want", command)
		}
	})
}

// The hops of one change, in pause: each step lets one pass, and the next one waits.
func TestCommand_StepsThroughOneChange(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		var hops []string
		for range 11 {
			f := w.frame()
			require.Len(t, f.Held, 1)
			hops = append(hops, f.Held[0].Hop+" "+f.Held[0].What)
			w.mustDo(`{"do":"step"}`)
		}
		assert.Equal(t, []string{
			"server MODIFIED", "deltafifo Update", "deltafifo Pop", "store Update",
			"handler OnUpdate", "workqueue Add", "workqueue Get", "worker reconcile",
			"worker reconciled", "workqueue Forget", "workqueue Done",
		}, hops)
		assert.Contains(t, w.do(`{"do":"step"}`), "no hop is held yet")
		w.mustDo(`{"do":"mode","mode":"run"}`)
		assert.Contains(t, w.do(`{"do":"step"}`), "no hop is held: pause first")
	})
}

// A change that is queued while the reader holds the hops is in the frame.
func TestCommand_PauseShowsTheQueue(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.mustDo(`{"do":"step"}`) // server
		f := w.frame()
		assert.Equal(t, "Update", f.Held[0].What)
		assert.Zero(t, f.Queue.Keys)
		w.mustDo(`{"do":"step"}`) // deltafifo Update
		f = w.frame()
		assert.Equal(t, "Pop", f.Held[0].What)
		assert.Equal(t, 1, f.Queue.Keys, "it is held before the Pop")
		assert.Equal(t, "default/a", f.Queue.Items[0].Key)
		for range 4 { // Pop, store Update, OnUpdate, Add
			w.mustDo(`{"do":"step"}`)
		}
		f = w.frame()
		assert.Zero(t, f.Queue.Keys)
		assert.Equal(t, "Get", f.Held[0].What)
		assert.Equal(t, []string{"default/a"}, f.Workqueue.Queue, "it is held before the Get")
		assert.Equal(t, []string{"default/a"}, f.Workqueue.Dirty)
		assert.Empty(t, f.Workqueue.Processing)
		w.mustDo(`{"do":"step"}`)
		f = w.frame()
		assert.Equal(t, []string{"default/a"}, f.Workqueue.Processing)
		assert.Empty(t, f.Workqueue.Dirty)
		w.mustDo(`{"do":"mode","mode":"run"}`)
		f = w.frame()
		assert.Empty(t, f.Held)
		assert.Equal(t, Run, f.Mode)
		assert.Equal(t, f.Server.RV, f.Store.RV)
	})
}

func TestCommand_WatchFaults(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"watch","fault":"cut"}`)
		w.after(5 * time.Second)
		f := w.frame()
		assert.Equal(t, "watching", f.Reflector.Phase)
		assert.Empty(t, f.Server.Fault, "the watch is open again")

		w.mustDo(`{"do":"watch","fault":"stall"}`)
		w.mustDo(`{"do":"create","key":"default/c"}`)
		f = w.frame()
		assert.Equal(t, "stall", f.Server.Fault)
		assert.Equal(t, 2, f.Store.Objects, "the watch is silent")
		w.mustDo(`{"do":"watch","fault":"stall"}`) // ends it
		w.after(5 * time.Second)
		assert.Equal(t, 3, w.frame().Store.Objects)

		w.mustDo(`{"do":"watch","fault":"expire"}`)
		f = w.frame()
		assert.Contains(t, f.Reflector.Reason, "too old")
		assert.Nil(t, f.Store.AsOf, "a change may be missing")
		w.after(5 * time.Second)
		f = w.frame()
		assert.Equal(t, "watching", f.Reflector.Phase)
		assert.WithinDuration(t, f.Time, *f.Store.AsOf, 5*time.Second)
		assert.NotEmpty(t, w.do(`{"do":"watch","fault":"none"}`))
	})
}

func TestCommand_ServerDownAndUp(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"server","up":false}`)
		w.after(3 * time.Second)
		f := w.frame()
		assert.False(t, f.Server.Up)
		assert.NotZero(t, f.Reflector.Failures)
		assert.NotEmpty(t, f.Reflector.Error)
		for f.Reflector.Phase != "backing off" {
			w.after(10 * time.Millisecond)
			f = w.frame()
		}
		assert.Positive(t, f.Reflector.BackoffMs)
		w.after(time.Duration(f.Reflector.BackoffMs+1) * time.Millisecond)
		assert.NotEqual(t, f.Reflector.Failures, w.frame().Reflector.Failures, "it has tried")
		w.mustDo(`{"do":"server","up":true}`)
		w.after(time.Minute)
		f = w.frame()
		assert.True(t, f.Server.Up)
		assert.Equal(t, "watching", f.Reflector.Phase)
		assert.Zero(t, f.Reflector.Failures)
	})
}

func TestCommand_Compact(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"compact"}`)
		f := w.frame()
		assert.Equal(t, f.Server.RV, f.Server.Compacted)
		assert.Empty(t, f.Server.Log)
	})
}

// A slow handler has a backlog, and the other one does not. A panic is counted.
func TestCommand_HandlerFaults(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"handler","name":"audit","delayMs":1000}`)
		for range 3 {
			w.mustDo(`{"do":"change","key":"default/a"}`)
		}
		f := w.frame()
		assert.Zero(t, f.Handlers[0].Pending)
		assert.Equal(t, 3, f.Handlers[1].Pending)
		assert.Equal(t, 1000.0, f.Handlers[1].DelayMs)
		assert.Equal(t, 3, f.Plot.Backlog)
		w.mustDo(`{"do":"handler","name":"audit","delayMs":0}`)
		w.after(5 * time.Second)
		assert.Zero(t, w.frame().Handlers[1].Pending)

		w.mustDo(`{"do":"handler","name":"audit","panic":true}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		assert.Equal(t, 1, w.frame().Handlers[1].Panics)
		assert.Contains(t, w.do(`{"do":"handler","name":"none","delayMs":1}`), `no handler "none"`)
		assert.NotEmpty(t, w.do(`{"do":"handler","name":"audit","delayMs":-1}`))
		assert.NotEmpty(t, w.do(`{"do":"handler","name":"audit"}`))
	})
}

// A pipeline that stops does not wait for a slow handler, however many changes it has left.
func TestFaults_AStoppingPipelineIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFaults(0)
		f.handlers["audit"] = &handlerFault{delay: time.Hour, changed: make(chan struct{})}
		takes := func() time.Duration {
			began := time.Now()
			f.call("audit")
			return time.Since(began)
		}
		assert.Equal(t, time.Hour, takes())
		f.wake()
		assert.Zero(t, takes())
		f.begin()
		assert.Equal(t, time.Hour, takes())
	})
}

func TestCommand_ReconcileFaults(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"reconcile","fault":"fail"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.after(5 * time.Second)
		f := w.frame()
		assert.Equal(t, 1, f.Workers.DeadLettersTotal)
		assert.Equal(t, "default/a", f.Workers.DeadLetters[0].Key)
		assert.Equal(t, uint64(10), f.Workers.Outcomes["error"])

		w.mustDo(`{"do":"reconcile","fault":"hang"}`)
		w.mustDo(`{"do":"change","key":"default/b"}`)
		w.after(10 * time.Second)
		f = w.frame()
		assert.Equal(t, []RunningView{{"default/b", 10_000}}, f.Workers.Running)
		assert.Equal(t, []string{"default/b"}, f.Workqueue.Processing)
		w.mustDo(`{"do":"reconcile","fault":"none"}`)
		assert.Empty(t, w.frame().Workers.Running, "it returns")

		w.mustDo(`{"do":"reconcile","fault":"conflict"}`)
		w.mustDo(`{"do":"change","key":"default/b"}`)
		w.after(5 * time.Second)
		assert.Contains(t, w.frame().Workers.DeadLetters[0].Error, "cannot be fulfilled")
		assert.NotEmpty(t, w.do(`{"do":"reconcile","fault":"explode"}`))
	})
}

// The token bucket is shown: each failure takes a token, and a bucket without tokens counts the
// keys that wait for one.
func TestCommand_ShowsTheBucket(t *testing.T) {
	story(t, func(w *world) {
		full := BucketView{Tokens: 100, Burst: 100, PerSecond: 10}
		assert.Equal(t, full, w.frame().Workqueue.Bucket)
		for i := range 60 {
			w.mustDo(`{"do":"create","key":"many/%d"}`, i)
		}
		w.mustDo(`{"do":"reconcile","fault":"fail"}`)
		w.mustDo(`{"do":"resync"}`)
		w.after(40 * time.Millisecond)
		f := w.frame()
		assert.Negative(t, f.Workqueue.Bucket.Tokens)
		assert.InDelta(t, f.Workqueue.DelayedTotal, -f.Workqueue.Bucket.Tokens, 1,
			"every key waits for a token")
	})
}

// A resync brings OnUpdate for each stored object, without a request to the server.
func TestCommand_Resync(t *testing.T) {
	for _, queue := range []string{"deltafifo", "realfifo"} {
		story(t, func(w *world) {
			w.mustDo(`{"do":"settings","queue":%q}`, queue)
			w.after(time.Second)
			w.frame()
			requests := len(w.server.Requests(apitest.Match{}))
			w.mustDo(`{"do":"resync"}`)
			updates := 0
			for _, hop := range w.frame().Hops {
				if hop.What == "OnUpdate" {
					updates++
				}
			}
			assert.Equal(t, 2, updates, queue)
			assert.Len(t, w.server.Requests(apitest.Match{}), requests)
		})
	}
}

// The observedTime of a leader is that of its last renewal, not of what it read before its term.
func TestElection_ALeaderObservesItsWrites(t *testing.T) {
	story(t, func(w *world) {
		w.after(10 * time.Minute)
		e := w.lab.elected()
		assert.Less(t, time.Since(e.leader().lock.observedTime()), 2*retryPeriod)
		leader := e.leader().identity
		assert.NotContains(t, w.frame().Election.Observed, leader)
		assert.Len(t, w.frame().Election.Observed, 1)
	})
}

// The leader is killed or paused: it does not release its lease, and the other candidate takes it
// with a greater fencing token.
func TestCommand_LeaderFaults(t *testing.T) {
	story(t, func(w *world) {
		before := w.frame().Election
		assert.NotEmpty(t, before.Leader)
		assert.Positive(t, before.LeftMs)
		assert.LessOrEqual(t, before.ObservedMs, 2*milliseconds(retryPeriod))
		w.mustDo(`{"do":"leader","fault":"pause"}`)
		assert.True(t, w.frame().Election.Paused)
		w.after(4 * time.Second)
		assert.Greater(t, w.frame().Election.ObservedMs, 2000.0, "no renewal was seen since")
		w.after(leaseDuration + renewDeadline)
		after := w.frame().Election
		assert.Equal(t, map[string]string{before.Leader: holdsState, after.Leader: leadsState},
			after.States)
		assert.Empty(t, after.Observed, "the leader does not wait, the other one does not look")
		w.mustDo(`{"do":"write","key":"default/a"}`)
		assert.Contains(t, w.do(`{"do":"write","key":"default/a","late":true}`), "refused")
		hops := w.frame().Hops
		last := slices.IndexFunc(hops, func(h HopView) bool { return h.Error != "" })
		require.Positive(t, last, "the refused write is a hop")
		assert.Equal(t, "PUT", hops[last].What)
		assert.NotEqual(t, before.Leader, after.Leader)
		assert.Equal(t, before.Token+1, after.Token)
		w.mustDo(`{"do":"leader","fault":"resume"}`)
		assert.False(t, w.frame().Election.Paused)

		w.mustDo(`{"do":"leader","fault":"kill"}`)
		w.after(leaseDuration + renewDeadline)
		assert.Equal(t, before.Leader, w.frame().Election.Leader)
		assert.Equal(t, stoppedState, w.frame().Election.States[after.Leader])
		done := w.frame().Workers.Outcomes["success"]
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.after(time.Second)
		assert.Equal(t, done+1, w.frame().Workers.Outcomes["success"], "the new leader works")
		assert.NotEmpty(t, w.do(`{"do":"leader","fault":"none"}`))
	})
}

// A leader that is released clears holderIdentity, and the other candidate takes the lease at its
// next attempt. A leader that is killed leaves its name in the lease.
func TestCommand_LeaderRelease(t *testing.T) {
	story(t, func(w *world) {
		before := w.frame().Election
		assert.Equal(t, before.Leader, before.Holder)
		began := time.Now()
		w.mustDo(`{"do":"leader","fault":"release"}`)
		released := w.frame().Election
		assert.Empty(t, released.Holder)
		assert.Zero(t, released.OpenMs, "any candidate may take it")
		assert.Equal(t, LeaseWrite{before.Leader, released.Writes[0].RV, "", 200},
			released.Writes[0])
		for w.frame().Election.Holder == "" {
			w.after(10 * time.Millisecond)
		}
		assert.Less(t, time.Since(began), 3*retryPeriod)
		after := w.frame().Election
		assert.NotEqual(t, before.Leader, after.Leader)
		assert.Equal(t, before.Token+1, after.Token)

		w.after(3 * leaseDuration)
		w.mustDo(`{"do":"leader","fault":"kill"}`)
		w.after(3 * retryPeriod)
		killed := w.frame().Election
		assert.Equal(t, after.Holder, killed.Holder, "nothing was released")
		assert.Zero(t, killed.LeftMs)
		assert.InDelta(t, milliseconds(leaseDuration-3*retryPeriod), killed.OpenMs,
			milliseconds(2*retryPeriod))
		w.after(leaseDuration)
		assert.Equal(t, before.Leader, w.frame().Election.Leader, "it is a candidate again")
	})
}

// A leader that is cut off stops by its own clock before another candidate may take the lease.
func TestCommand_LeaderCut(t *testing.T) {
	story(t, func(w *world) {
		before := w.frame().Election
		w.mustDo(`{"do":"leader","fault":"cut"}`)
		assert.Equal(t, []string{before.Leader}, w.frame().Election.CutNames)
		for w.frame().Election.LeftMs > 0 {
			w.after(10 * time.Millisecond)
		}
		gap := w.frame().Election
		assert.Equal(t, before.Leader, gap.Holder, "the lease still names it")
		assert.Greater(t, gap.OpenMs, milliseconds(retryPeriod))
		done := w.frame().Workers.Outcomes["success"]
		w.mustDo(`{"do":"change","key":"default/a"}`)
		assert.Equal(t, done, w.frame().Workers.Outcomes["success"], "no worker works")
		w.after(leaseDuration)
		after := w.frame()
		assert.NotEqual(t, before.Leader, after.Election.Leader)
		assert.Equal(t, done+1, after.Workers.Outcomes["success"])
		w.mustDo(`{"do":"leader","fault":"resume"}`)
		assert.Empty(t, w.frame().Election.CutNames)
		w.after(leaseDuration)
		assert.Equal(t, after.Election.Leader, w.frame().Election.Leader)
	})
}

// Both candidates write to the same version of the lease. The server accepts the first write.
func TestCommand_LeaderRace(t *testing.T) {
	for range 6 {
		story(t, func(w *world) {
			before := w.frame().Election
			w.mustDo(`{"do":"leader","fault":"race"}`)
			for w.frame().Election.Refusals == before.Refusals {
				w.after(10 * time.Millisecond)
			}
			assert.Equal(t, before.Releases+1, w.frame().Election.Releases)
			writes := w.frame().Election.Writes
			lost, won, released := writes[0], writes[1], writes[2]
			assert.Equal(t, 409, lost.Code)
			assert.Equal(t, 200, won.Code)
			assert.Equal(t, won.RV, lost.RV)
			assert.NotEqual(t, won.By, lost.By)
			assert.Equal(t, won.By, won.Holder)
			assert.Empty(t, released.Holder)
			assert.Equal(t, won.By, w.frame().Election.Leader)
			w.after(leaseDuration)
			assert.Equal(t, won.By, w.frame().Election.Leader)
		})
	}
}

// A pipeline that starts again does not release the lease, even while its leader is paused.
func TestElection_RestartKeepsTheLease(t *testing.T) {
	for _, fault := range []string{"resume", "pause", "cut"} {
		story(t, func(w *world) {
			before := w.frame().Election
			w.mustDo(`{"do":"leader","fault":%q}`, fault)
			w.after(leaseDuration - retryPeriod)
			began := time.Now()
			w.mustDo(`{"do":"restart"}`)
			assert.Equal(t, 2, w.starts)
			assert.Less(t, time.Since(began), time.Second)
			assert.Equal(t, before.Writes, w.frame().Election.Writes, fault)
		})
	}
}

// Settings start another pipeline. The page stays, and so does the pause.
func TestCommand_SettingsRestart(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"index","name":"label:team"}`)
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.mustDo(`{"do":"settings","queue":"realfifo","workers":5,"watchList":false}`)
		assert.Equal(t, 2, w.starts, "held hops do not keep the first pipeline alive")
		assert.Equal(t, Pause, w.frame().Mode)
		w.mustDo(`{"do":"mode","mode":"run"}`)
		w.after(time.Second)
		f := w.frame()
		assert.Equal(t, "RealFIFO", f.Queue.Kind)
		assert.Equal(t, 5, f.Workers.Count)
		assert.False(t, f.Settings.WatchList)
		assert.Equal(t, "opening", f.Reflector.From, "a LIST, not a stream")
		assert.Equal(t, []IndexValue{{"red", 2, []string{"default/a", "default/b"}}},
			f.Store.Index.Values, "the index is kept")

		w.mustDo(`{"do":"settings","workMs":200}`)
		assert.Equal(t, 2, w.starts, "the speed of the workers needs no restart")
		w.mustDo(`{"do":"change","key":"default/a"}`)
		assert.Len(t, w.frame().Workers.Running, 1)
		for _, wrong := range []string{`"queue":"stack"`, `"workers":0`, `"workMs":-1`} {
			assert.NotEmpty(t, w.do(`{"do":"settings",%s}`, wrong))
		}
	})
}

func TestCommand_Index(t *testing.T) {
	story(t, func(w *world) {
		assert.Equal(t, "namespace", w.frame().Store.Index.Name)
		w.mustDo(`{"do":"index","name":"label:team"}`)
		assert.Equal(t, "red", w.frame().Store.Index.Values[0].Value)
		w.mustDo(`{"do":"index","name":"namespace"}`)
		assert.Equal(t, "default", w.frame().Store.Index.Values[0].Value)
		assert.NotEmpty(t, w.do(`{"do":"index","name":"phase"}`))
	})
}

// An object with another owner moves from one set of the index to another. It can be in several
// sets, or have no value.
func TestCommand_Own(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"index","name":"owner"}`)
		assert.Empty(t, w.frame().Store.Index.Values)
		w.mustDo(`{"do":"own","key":"default/b","owners":["db"]}`)
		a := []string{"default/a"}
		both := []string{"default/a", "default/b"}
		db := IndexValue{"db", 1, []string{"default/b"}}
		for _, want := range []struct {
			values []string
			index  []IndexValue
		}{
			{[]string{"web"}, []IndexValue{db, {"web", 1, a}}},
			{[]string{"db"}, []IndexValue{{"db", 2, both}}},
			{[]string{"web", "db"}, []IndexValue{{"db", 2, both}, {"web", 1, a}}},
			{[]string{}, []IndexValue{db}},
		} {
			w.mustDo(`{"do":"own","key":"default/a"}`)
			f := w.frame()
			assert.Equal(t, want.values, f.Store.Items[0].Values)
			assert.Equal(t, want.index, f.Store.Index.Values)
		}
		w.mustDo(`{"do":"index","name":"namespace"}`)
		assert.Equal(t, []string{"default"}, w.frame().Store.Items[0].Values)
		assert.Contains(t, w.do(`{"do":"own","key":"default/none"}`), "no object")
	})
}

// Each limiter gives the delays of its kind, and counts the failures or not.
func TestCommand_Limiter(t *testing.T) {
	delays := map[string][]float64{
		"MaxOf": {5, 10, 20, 40, 80}, "Exponential": {5, 10, 20, 40, 80},
		"FastSlow": {1000, 1000, 1000, 10_000, 10_000}, "Bucket": {0, 0, 0, 0, 0},
	}
	story(t, func(w *world) {
		assert.Equal(t, "MaxOf", w.frame().Workqueue.Limiter)
		for name, want := range delays {
			w.mustDo(`{"do":"limiter","name":%q}`, name)
			f := w.frame().Workqueue
			assert.Equal(t, name, f.Limiter)
			assert.Empty(t, f.Requeues)
			assert.Equal(t, name == "MaxOf" || name == "Bucket", f.Bucket.Burst > 0, name)
			for n, delay := range want {
				assert.Equal(t, delay, milliseconds(w.lab.limiter.next(n)), name)
				waits := w.lab.limiter.When("default/x")
				assert.Equal(t, delay, milliseconds(waits), name)
			}
			if name != "Bucket" {
				assert.Equal(t, []RequeueView{{"default/x", len(want),
					milliseconds(w.lab.limiter.next(len(want)))}}, w.frame().Workqueue.Requeues)
			}
			w.lab.limiter.Forget("default/x")
			assert.Empty(t, w.frame().Workqueue.Requeues)
		}
		assert.Contains(t, w.do(`{"do":"limiter","name":"none"}`), "want one of [Bucket")
		w.mustDo(`{"do":"restart"}`)
		assert.Equal(t, "MaxOf", w.frame().Workqueue.Limiter)
	})
}

// After ShutDown, the queue refuses keys and hands out those that it has. Then the workers end.
func TestCommand_ShutDown(t *testing.T) {
	story(t, func(w *world) {
		for _, name := range []string{"c", "d"} {
			w.mustDo(`{"do":"create","key":"default/%s"}`, name)
		}
		w.mustDo(`{"do":"reconcile","fault":"hang"}`)
		for _, name := range []string{"a", "b", "c"} {
			w.mustDo(`{"do":"change","key":"default/%s"}`, name)
		}
		w.mustDo(`{"do":"shutdown"}`)
		w.mustDo(`{"do":"change","key":"default/d"}`)
		f := w.frame()
		assert.Equal(t, &ShutDownView{Refused: 1}, f.Workqueue.ShutDown)
		assert.Equal(t, []string{"default/c"}, f.Workqueue.Queue)
		assert.Len(t, f.Workqueue.Processing, 2)
		assert.Zero(t, f.Workers.Ended)
		assert.Contains(t, w.do(`{"do":"shutdown"}`), "shut down already")
		done := f.Workers.Outcomes["success"]
		w.mustDo(`{"do":"reconcile","fault":"none"}`)
		f = w.frame()
		assert.Equal(t, done+3, f.Workers.Outcomes["success"], "the queued key is handed out")
		assert.Equal(t, 2, f.Workers.Ended)
		w.mustDo(`{"do":"leader","fault":"race"}`)
		w.after(leaseDuration)
		assert.Equal(t, 2, w.frame().Workers.Ended, "those of the next term")

		w.mustDo(`{"do":"restart"}`)
		w.after(time.Second)
		f = w.frame()
		assert.Nil(t, f.Workqueue.ShutDown)
		assert.Zero(t, f.Workers.Ended)
		assert.Equal(t, uint64(4), f.Workers.Outcomes["success"], "the list brings every key")
	})
}

// ShutDownWithDrain returns when no key is queued or in processing.
func TestCommand_Drain(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"reconcile","fault":"hang"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.mustDo(`{"do":"shutdown","drain":true}`)
		w.after(time.Minute)
		f := w.frame()
		assert.Equal(t, &ShutDownView{Drain: true}, f.Workqueue.ShutDown)
		assert.Equal(t, 1, f.Workers.Ended, "the idle worker")
		w.mustDo(`{"do":"reconcile","fault":"none"}`)
		f = w.frame()
		assert.Equal(t, &ShutDownView{Drain: true, Ended: true}, f.Workqueue.ShutDown)
		assert.Equal(t, 2, f.Workers.Ended)
	})
	story(t, func(w *world) { // a restart ends it
		w.mustDo(`{"do":"code","id":"done","on":true}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.mustDo(`{"do":"shutdown","drain":true}`)
		w.mustDo(`{"do":"lesson","id":%q,"step":0}`, lessons[1].ID)
		w.after(time.Second)
		assert.Equal(t, 2, w.starts)
		assert.Nil(t, w.frame().Workqueue.ShutDown)
		w.mustDo(`{"do":"lesson","id":""}`)
	})
}

func TestCommand_Refusals(t *testing.T) {
	story(t, func(w *world) {
		for _, wrong := range []string{
			`{"do":"explode"}`, `{"do":"mode","mode":"fast"}`,
			`{"do":"mode","mode":"slow","delayMs":1e9}`, `{"do":"workload","rate":1e9}`,
			`{"do":"workload","objects":1e9}`, `{"do":`,
		} {
			assert.NotEmpty(t, w.do("%s", wrong), wrong)
		}
		w.lab.options.Server = nil // as on another cluster
		assert.Contains(t, w.do(`{"do":"compact"}`), "does not write")
		w.mustDo(`{"do":"follow","key":"default/a"}`)
		w.mustDo(`{"do":"mode","mode":"slow","delayMs":10}`)
	})
}
