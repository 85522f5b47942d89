// SPDX-License-Identifier: Apache-2.0

package served

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/informerstack/apitest"
	"example.com/informerstack/client"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/factory"
	"example.com/informerstack/informer/namespaces"
	"example.com/informerstack/reflector"
)

// A controller starts before its kind exists. It has synced with nothing, and makes no request.
// Once the kind is established, its objects arrive.
func TestStory_AnOptionalKindIsEmptyUntilItIsServed(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		w.start()
		assert.True(t, w.informer.HasSynced())
		require.NoError(t, w.kinds.Ready())
		assert.Equal(t, Absent, w.status().Phase)
		w.after(24 * time.Hour)
		assert.Empty(t, w.requests())
		require.NoError(t, w.informer.Err())

		w.define(false, "v1")
		assert.Equal(t, NotEstablished, w.status().Phase)
		w.after(time.Hour)
		assert.Empty(t, w.requests())

		w.define(true, "v1")
		w.create("a")
		w.after(time.Second)
		w.handlerSaw("add a")
		w.isRight()
	})
}

// A required kind keeps the informer from syncing, and its error names the definition.
func TestStory_ARequiredKindIsNamedUntilItIsServed(t *testing.T) {
	story(t, Required, func(w *world) {
		t := w.t
		w.start()
		w.after(time.Minute)
		assert.False(t, w.informer.HasSynced())
		assert.Empty(t, w.requests())
		const text = "websites.example.com in version v1 is not served: " +
			"there is no CustomResourceDefinition websites.example.com"
		require.EqualError(t, w.kinds.Ready(), text)
		require.ErrorContains(t, w.informer.Err(), text)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, informer.WaitForSync(ctx, w.informer), text)

		w.define(true, "-v1", "v2", "v3")
		w.after(time.Minute)
		require.ErrorContains(t, w.informer.Err(), "v1 is not served; served: v2, v3")

		w.define(true, "v1")
		w.create("a")
		w.after(time.Second)
		assert.True(t, w.informer.HasSynced())
		w.handlerSaw("add a")
		require.NoError(t, w.kinds.Ready())
		require.NoError(t, w.informer.Err())
	})
}

// A kind that exists at the start is one list, or one stream, and one watch, as always.
func TestStory_AServedKindCostsNothing(t *testing.T) {
	story(t, Required, func(w *world) {
		t := w.t
		w.define(true, "v1")
		w.create("a")
		w.start()
		w.create("b")
		w.update("a")
		w.handlerSaw("add b", "initial a", "update a")
		assert.Len(t, w.requests(), 1, "a streaming list")
	})
}

// The kind goes: its objects leave the store, handlers get a delete for each, and no more requests
// are made. The handlers stay, and get the objects of the next one.
func TestStory_AKindGoesAndComes(t *testing.T) {
	for _, policy := range []Policy{Optional, Required} {
		story(t, policy, func(w *world) {
			t := w.t
			w.define(true, "v1")
			w.create("a")
			w.create("b")
			w.start()
			w.handlerSaw("initial a", "initial b")
			for range 20 {
				w.after(time.Second)
				w.undefine()
				w.after(5 * time.Second)
				assert.Len(t, w.handler.take(), 2)
				w.isRight()
				assert.True(t, w.informer.HasSynced())
				w.define(true, "v1")
				w.create("a")
				w.create("b")
				w.after(time.Second)
				w.handlerSaw("add a", "add b")
				w.isRight()
			}
		})
	}
}

// A version that is not served any more is gone as well: the server still has the objects, and the
// informer has them again when it is served again. There is no silent change of the version.
func TestStory_AVersionIsNotServedForAWhile(t *testing.T) {
	story(t, Required, func(w *world) {
		t := w.t
		w.define(true, "v1", "v2")
		w.create("a")
		w.start()
		w.handlerSaw("initial a")
		w.define(true, "-v1", "v2")
		w.after(drain)
		w.handlerSaw("tombstone a")
		assert.Equal(t, "v1 is not served; served: v2", w.status().Reason)
		require.ErrorContains(t, w.kinds.Ready(), "v1 is not served; served: v2")
		w.after(time.Hour)
		w.define(true, "v1", "v2")
		w.after(time.Second)
		w.handlerSaw("add a")
	})
}

// A definition that is being deleted serves until it is gone: a controller that removes finalizers
// sees its objects, and each of their deletes.
func TestStory_ATerminatingKindIsServed(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		w.define(true, "v1")
		w.create("a")
		held := website("b")
		held.SetFinalizers([]string{"example.com/hold"})
		require.NoError(t, w.server.Create(held))
		w.start()
		w.handlerSaw("initial a", "initial b")
		require.NoError(t, w.server.Delete(crd(true)))
		w.settle()
		assert.Equal(t, Serving, w.status().Phase)
		assert.Equal(t, "CustomResourceDefinition websites.example.com is being deleted",
			w.status().Reason)
		w.after(time.Hour)
		w.handlerSaw("delete a", "update b")
		w.update("b")
		w.handlerSaw("update b")
		require.NoError(t, w.server.Get(held))
		held.SetFinalizers(nil)
		w.serves(false)
		require.NoError(t, w.server.Update(held))
		w.after(5 * time.Second)
		assert.Len(t, w.handler.take(), 1)
		w.isRight()
	})
}

// The connection of the watch is dead when the kind goes. The objects leave the store anyway.
func TestStory_AKindGoesBehindADeadWatch(t *testing.T) {
	story(t, Required, func(w *world) {
		t := w.t
		w.define(true, "v1")
		w.create("a")
		w.start()
		w.handlerSaw("initial a")
		assert.Equal(t, 1, w.server.Faults().Break(ofWebsites, apitest.StallStream))
		w.undefine()
		w.after(drain - time.Millisecond)
		w.handlerSaw()
		w.after(time.Millisecond)
		w.handlerSaw("tombstone a")
		w.isRight()
	})
}

// While the kind is gone, the informer claims no more than is known: the version is the last one,
// and the time is that of the definitions.
func TestStory_ClaimsWhileTheKindIsGone(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		w.define(true, "v1")
		w.create("a")
		w.start()
		w.after(time.Minute)
		reached := w.informer.Health().ResourceVersion
		w.undefine()
		w.after(5 * time.Second)
		contact := w.informer.Health().Reflector.LastContact
		require.NoError(t, w.informer.WaitForResourceVersion(t.Context(), reached))
		for i := range 60 {
			w.server.CreateMap(fmt.Sprint(i)) // so that there are bookmarks
			w.after(time.Minute)
			if i > 0 { // the first one ends an hour without a bookmark
				require.NoError(t, w.informer.Health().Fresh(time.Now(), 3*time.Minute))
			}
		}
		assert.False(t, w.informer.Health().CurrentAsOf.After(w.kinds.currentAsOf()))
		silent := time.Now()
		w.server.Faults().Fail(0, apitest.Match{Resource: "customresourcedefinitions"},
			apierrors.NewServiceUnavailable("down"))
		w.after(time.Hour) // the last watch of the definitions has ended after ten minutes
		assert.Less(t, w.informer.Health().CurrentAsOf.Sub(silent), 11*time.Minute)
		assert.Equal(t, contact, w.informer.Health().Reflector.LastContact, "no server was asked")
	})
}

// The kind goes before the cache has seen a write. A reconcile that waits for it is called again
// while the kind is gone: it asks for that, too.
func TestStory_AKindGoesBeforeAWriteIsSeen(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		var writes controller.Writes[string]
		seen := writes.SeenBy(w.informer.GetStore())
		w.define(true, "v1")
		w.start()
		w.after(time.Minute)
		assert.False(t, w.kinds.Gone(websites))
		w.server.Faults().Break(ofWebsites, apitest.StallStream)
		w.create("a")
		writes.Wrote("key", w.server.ResourceVersion())
		w.undefine()
		w.after(time.Hour)
		assert.False(t, seen("key"))
		assert.True(t, w.kinds.Gone(websites))
		w.define(true, "v1")
		w.create("b")
		w.after(time.Second)
		assert.False(t, w.kinds.Gone(websites))
		assert.True(t, seen("key"))
	})
}

// An informer that starts after the server has become silent is as old as the definitions, from its
// first list on.
func TestStory_StartsWhileTheDefinitionsAreOld(t *testing.T) {
	observe := func(reflector.Transition) {}
	var o worldOptions
	o.policy = Optional
	o.options.Reflector.Observe = func(t reflector.Transition) { observe(t) }
	inBubble(t, o, func(w *world) {
		t := w.t
		defer background(w.kinds.Run)()
		w.after(time.Minute)
		known := time.Now()
		observe = func(reflector.Transition) {
			assert.False(t, w.informer.Status().Reflector.CurrentAsOf.After(known))
		}
		w.server.Faults().Fail(0, apitest.Match{}, apierrors.NewServiceUnavailable("down"))
		w.server.Faults().Break(apitest.Match{}, apitest.CloseStream)
		w.after(time.Hour)
		w.stop = background(w.informer.Run)
		for range 10 {
			w.after(time.Second)
			health := w.informer.Health()
			assert.True(t, health.HasSynced)
			assert.False(t, health.CurrentAsOf.After(known))
			assert.Zero(t, health.Reflector.LastContact)
		}
	})
}

// A wait for a newer version has no deadline. It ends when the definitions are known to be current
// as of a time after the call: then the kind is gone, and not only late.
func TestStory_AWaitForAVersionOfAKindThatIsGone(t *testing.T) {
	for _, policy := range []Policy{Optional, Required} {
		story(t, policy, func(w *world) {
			t := w.t
			w.define(true, "v1")
			w.start()
			w.after(time.Minute)
			w.undefine()
			w.after(5 * time.Second)
			result := make(chan error, 1)
			wait := func() {
				version := w.server.ResourceVersion()
				go func() { result <- w.informer.WaitForResourceVersion(t.Context(), version) }()
				w.settle()
			}
			wait()
			w.server.CreateMap("a") // so that there is a bookmark
			w.after(5 * time.Second)
			require.Empty(t, result, "nothing shows that it is still gone")
			w.after(2 * time.Minute)
			require.Len(t, result, 1)
			err := <-result
			var behind *informer.BehindError
			require.ErrorAs(t, err, &behind)
			var notServed *NotServedError
			require.ErrorAs(t, behind.Cause, &notServed)
			assert.Equal(t, Absent, notServed.Status.Phase)

			wait()
			w.define(true, "v1")
			w.after(time.Second)
			require.Len(t, result, 1)
			require.NoError(t, <-result, "the kind is back, and everything is listed")
		})
	}
}

// A required kind that is absent is an error in the log, once. No line says that a list or a stream
// was tried: nothing was requested.
func TestStory_TheLogOfAnAbsentKind(t *testing.T) {
	for policy, count := range map[Policy]int{Required: 1, Optional: 0} {
		synctest.Test(t, func(t *testing.T) {
			var lines []string
			logger := funcr.New(func(_, args string) { lines = append(lines, args) },
				funcr.Options{Verbosity: 3})
			options := informer.Options{Reflector: reflector.Options{Logger: &logger}}
			options.Reflector.WatchErrorHandler = func(
				_ context.Context, _ *reflector.Reflector, err error,
			) {
				lines = append(lines, "handled: "+err.Error())
			}
			w := newWorld(t, worldOptions{policy: policy, options: options})
			defer w.close()
			w.start()
			w.after(time.Hour)
			handled := 0
			for _, line := range lines {
				assert.NotContains(t, line, "treaming", line)
				if strings.HasPrefix(line, "handled: ") {
					handled++
					assert.Contains(t, line, "is not served: there is no CustomResourceDefinition")
				}
			}
			assert.Equal(t, count, handled, lines)
		})
	}
}

// A definition says that the kind is served, and the server answers 404 all the same. It is asked
// again later and later; then the reflector lists, with waits of its own, and shows the error.
func TestStory_AnEndpointThatIsNotThere(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		w.start()
		answers := w.server.Faults().Fail(0, ofWebsites,
			apierrors.NewNotFound(websites.GroupResource(), ""))
		var want []time.Duration
		for _, ms := range []time.Duration{0, 100, 300, 700, 1500, 3100} {
			want = append(want, ms*time.Millisecond)
		}
		asked := func(since time.Time) (after []time.Duration) {
			for _, r := range w.requests() {
				if !r.Time.Before(since) {
					after = append(after, r.Time.Sub(since))
				}
			}
			return after
		}
		w.after(time.Minute)
		began := time.Now()
		w.define(true, "v1")
		w.after(time.Second)
		assert.Equal(t, want[:4], asked(began))
		w.undefine() // ends the tries; its first event may cause one more
		w.after(time.Minute)
		tries := asked(began)
		assert.Equal(t, want[:4], tries[:4])
		assert.Subset(t, []time.Duration{time.Second}, tries[4:])
		require.NoError(t, w.informer.Err())

		began = time.Now()
		w.define(true, "v1")
		w.after(3100*time.Millisecond - 1)
		assert.Equal(t, want[:5], asked(began), "the waits begin again")
		require.NoError(t, w.informer.Err())
		w.after(1)
		assert.Equal(t, want, asked(began))
		require.ErrorContains(t, w.informer.Err(), "is served now, and must be listed: ")
		w.after(time.Minute)
		assert.Greater(t, len(asked(began)), len(want), "the reflector's")
		answers()
		w.create("a")
		w.after(time.Minute)
		w.handlerSaw("add a")
		w.isRight()
	})
}

// The server answers a watch with 404. If the definition goes soon after, nothing has failed.
// Otherwise that is an error.
func TestStory_AWatchThatIsNotThere(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		w.define(true, "v1")
		w.create("a")
		w.start()
		w.after(time.Minute)
		w.handlerSaw("initial a")
		failures := func() int { return w.informer.Status().Reflector.Failures }
		refuse := func() {
			match := ofWebsites
			match.Verb = "watch"
			w.server.Faults().Fail(1, match, apierrors.NewNotFound(websites.GroupResource(), ""))
			require.Equal(t, 1, w.server.Faults().Break(ofWebsites, apitest.CloseStream))
			w.settle()
		}
		before := failures()
		refuse()
		w.after(time.Second - 1)
		assert.Equal(t, before, failures())
		w.after(1)
		assert.Equal(t, before+1, failures())
		w.after(time.Minute)
		w.isRight()

		before = failures()
		w.handler.take()
		refuse()
		w.after(999 * time.Millisecond)
		w.undefine()
		w.handlerSaw("tombstone a")
		w.after(time.Minute)
		assert.Equal(t, before, failures())
		w.isRight()
	})
}

// A Factory shares an informer of each form that follows its kind.
func TestFactory_FollowsItsKinds(t *testing.T) {
	for i, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			inBubble(t, worldOptions{policy: Optional}, func(w *world) {
				t := w.t
				shared := factory.New(
					func(key informer.Collection) (informer.SharedIndexInformer, error) {
						c, err := client.New[*Website](w.server.Config(), key.Resource,
							client.Options{})
						if err != nil {
							return nil, err
						}
						return forms[i].make(c.REST(), w.kinds.Options(key.Resource, Optional,
							informer.Options{Namespace: key.Namespace, Kind: websiteKind})), nil
					})
				var all []informer.SharedIndexInformer
				for _, namespace := range []string{"", "default", "other"} {
					made, err := shared.Informer(informer.Collection{
						Resource: websites, Namespace: namespace})
					require.NoError(t, err)
					all = append(all, made)
				}
				stored := func() (counts []int) {
					w.settle()
					for _, made := range all {
						counts = append(counts, len(made.GetStore().ListKeys()))
					}
					return counts
				}
				stopKinds := background(w.kinds.Run)
				defer stopKinds()
				ctx, stop := context.WithCancel(t.Context())
				shared.Start(ctx)
				require.NoError(t, shared.WaitForSync(ctx))
				w.after(time.Hour)
				assert.Equal(t, 3, w.status().Informers)
				for range 3 {
					assert.Equal(t, []int{0, 0, 0}, stored())
					w.define(true, "v1")
					w.create("a")
					w.after(time.Second)
					assert.Equal(t, []int{1, 1, 0}, stored())
					w.undefine()
					w.after(5 * time.Second)
				}
				stop()
				shared.Shutdown()
			})
		})
	}
}

// A definition that is replaced while its watch is broken is another kind, even if the watch of the
// objects is dead, so that nothing shows it.
func TestStory_AnUnseenReplacementIsListedAgain(t *testing.T) {
	story(t, Optional, func(w *world) {
		w.define(true, "v1")
		w.create("a")
		w.start()
		w.handlerSaw("initial a")
		w.isFaulty = true
		definitions := apitest.Match{Resource: "customresourcedefinitions"}
		works := w.server.Faults().Fail(0, definitions, apierrors.NewServiceUnavailable("down"))
		w.server.Faults().Break(definitions, apitest.CloseStream)
		w.server.Faults().Break(ofWebsites, apitest.StallStream)
		w.undefine()
		w.define(true, "v1")
		w.create("b")
		works()
		w.after(time.Minute)
		w.isFaulty = false
		w.isRight()
		w.handlerSaw("add b", "tombstone a")
	})
}

// The server grants a watch late, when the kind was replaced meanwhile: it is not followed.
func TestStory_AWatchIsGrantedAfterTheKindWasReplaced(t *testing.T) {
	story(t, Optional, func(w *world) {
		w.define(true, "v1")
		w.create("a")
		w.start()
		w.after(time.Minute)
		w.handlerSaw("initial a")
		w.server.Faults().Add(apitest.Fault{
			Match: apitest.Match{Resource: "websites", Verb: "watch"}, Times: 1,
			Delay: 5 * time.Second,
		})
		w.server.Faults().Break(ofWebsites, apitest.CloseStream)
		w.after(time.Second)
		w.undefine()
		w.define(true, "v1")
		w.create("b")
		w.after(4500 * time.Millisecond)
		w.handlerSaw("add b", "tombstone a")
		w.isRight()
	})
}

// Without the permission to list definitions, an informer is an ordinary one.
func TestStory_WithoutPermissionAnOrdinaryInformer(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		w.server.Faults().Fail(0, apitest.Match{Resource: "customresourcedefinitions"},
			apierrors.NewForbidden(definitions.GroupResource(), "", nil))
		w.isServed = true // requests are made
		w.start()
		assert.Equal(t, Unwatched, w.status().Phase)
		assert.Contains(t, w.status().Reason, "forbidden")
		w.after(time.Minute)
		assert.True(t, apierrors.IsNotFound(w.informer.Err()), "%v", w.informer.Err())
		assert.NotEmpty(t, w.requests())
		require.NoError(t, w.kinds.Ready())
		w.define(true, "v1")
		w.create("a")
		w.after(2 * time.Minute)
		w.handlerSaw("initial a")
		w.isRight()
	})
}

// If the permission is taken away, the last definitions say nothing any more, even when the server
// then fails in another way, until they are listed again.
func TestStory_PermissionIsTakenAway(t *testing.T) {
	story(t, Optional, func(w *world) {
		t, ofDefinitions := w.t, apitest.Match{Resource: "customresourcedefinitions"}
		w.start()
		allow := w.server.Faults().Fail(0, ofDefinitions,
			apierrors.NewForbidden(definitions.GroupResource(), "", nil))
		w.server.Faults().Break(ofDefinitions, apitest.ErrorStream)
		w.isFaulty = true
		w.after(time.Minute)
		w.define(true, "v1")
		w.create("a")
		w.after(time.Minute)
		w.handlerSaw("add a")
		repair := w.server.Faults().Fail(0, ofDefinitions, apierrors.NewInternalError(io.EOF))
		allow()
		w.server.Faults().Break(ofWebsites, apitest.ErrorStream)
		w.after(time.Minute)
		assert.Equal(t, Unwatched, w.status().Phase)
		w.isRight()
		repair()
		w.after(time.Minute)
		assert.Equal(t, Serving, w.status().Phase)
		w.handlerSaw("update a")
		w.isFaulty = false
		w.undefine()
		w.handlerSaw("delete a")
	})
}

// An informer does not wait longer than ten seconds for the definitions.
func TestStory_DefinitionsAreLate(t *testing.T) {
	story(t, Required, func(w *world) {
		t := w.t
		w.server.Faults().Add(apitest.Fault{
			Match: apitest.Match{Resource: "customresourcedefinitions", Verb: "list,watch"},
			Delay: time.Minute,
		})
		w.define(true, "v1")
		w.create("a")
		w.start()
		w.after(patience - time.Second)
		assert.Empty(t, w.requests())
		assert.Equal(t, Unknown, w.status().Phase)
		require.Error(t, w.kinds.Ready())
		w.after(2 * time.Second)
		w.handlerSaw("initial a")
		w.after(2 * time.Minute)
		assert.Equal(t, Serving, w.status().Phase)
		w.isRight()
		assert.Len(t, w.requests(), 1)
	})
}

// An API server may learn a moment after another one that a kind is served. It is asked again.
func TestStory_AServerThatIsLate(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		w.start()
		w.server.Faults().Fail(3, ofWebsites,
			apierrors.NewNotFound(websites.GroupResource(), ""))
		w.define(true, "v1")
		w.create("a")
		w.after(time.Second)
		w.handlerSaw("add a")
		require.NoError(t, w.informer.Err())
		status := w.informer.Status().Reflector
		assert.Equal(t, status.Fallbacks, status.Failures, "a stream that was not tried")
	})
}

// A kind with many objects is listed by the reflector, page by page or as a stream.
func TestStory_AServedKindWithManyObjects(t *testing.T) {
	inBubble(t, worldOptions{policy: Optional}, func(w *world) {
		t := w.t
		w.define(true, "v1")
		for i := range pageSize + 1 {
			require.NoError(t, w.server.Create(website(fmt.Sprintf("a%03d", i))))
		}
		w.define(true, "-v1")
		w.start()
		w.define(true, "v1")
		w.after(2 * time.Second)
		assert.Len(t, w.handler.take(), pageSize+1)
		w.isRight()
		verbs := ""
		for _, r := range w.requests() {
			verbs += r.Verb + " "
		}
		assert.Equal(t, "list watch ", verbs, "one page, then a stream")
	})
}

// The objects of a kind cannot be listed when it begins to be served: the informer shows why.
func TestStory_AServedKindThatIsForbidden(t *testing.T) {
	story(t, Optional, func(w *world) {
		t := w.t
		w.start()
		w.server.Faults().Fail(3, ofWebsites,
			apierrors.NewForbidden(websites.GroupResource(), "", nil))
		w.define(true, "v1")
		w.create("a")
		w.after(2 * time.Second)
		assert.True(t, apierrors.IsForbidden(w.informer.Err()), "%v", w.informer.Err())
		require.Error(t, w.informer.Health().Fresh(time.Now(), time.Hour))
		w.after(time.Minute)
		w.handlerSaw("add a")
		w.isRight()
	})
}

// While the kind is gone, no page of an earlier list is empty, and no question is answered.
func TestListStream_OfAKindThatIsGone(t *testing.T) {
	inBubble(t, worldOptions{policy: Optional}, func(w *world) {
		w.start()
		ctx, stop := context.WithCancel(w.t.Context())
		defer stop()
		followed := w.kinds.follow(ctx, websites, Optional)
		lw := newListWatch(&reflector.ListWatch{}, followed, Optional, nil)
		for _, options := range []metav1.ListOptions{{Limit: 1}, {Limit: 500, Continue: "next"}} {
			_, err := lw.ListStream(w.t.Context(), options, nil)
			var notServed *NotServedError
			require.ErrorAs(w.t, err, &notServed)
			assert.Equal(w.t, Absent, notServed.Status.Phase)
		}
		m, err := lw.ListStream(w.t.Context(), metav1.ListOptions{Limit: 500}, nil)
		var empty *reflector.KnownEmptyError
		require.ErrorAs(w.t, err, &empty)
		assert.Equal(w.t, w.kinds.currentAsOf(), empty.AsOf)
		assert.Zero(w.t, m)
	})
}

// A list counts if the next watch begins at its version. Otherwise it was given up: L3.
func TestListWatch_AListCountsAtItsVersion(t *testing.T) {
	lw := newListWatch(nil, nil, Optional, nil)
	lw.listed(list{content: 1, version: "5"})
	assert.Equal(t, content(1), lw.shows("5"))
	lw.listed(list{content: 2, version: "9"})
	assert.Equal(t, content(1), lw.shows("7"), "the list beside the watch was given up")
	assert.Equal(t, content(1), lw.shows("9"), "it is forgotten")
	lw.listed(list{content: 2, version: "9"})
	assert.Equal(t, content(2), lw.shows("9"))
}

// Informers stop while they wait, and Kinds stops before an informer: nothing is left.
func TestStory_Stops(t *testing.T) {
	for _, policy := range []Policy{Optional, Required} {
		inBubble(t, worldOptions{policy: policy}, func(w *world) {
			w.start()
			w.after(time.Minute) // w.close stops what waits
		})
		inBubble(t, worldOptions{policy: policy}, func(w *world) {
			t := w.t
			stopKinds := background(w.kinds.Run)
			w.stop = background(w.informer.Run)
			w.after(time.Minute)
			w.isServed = true // requests are made
			stopKinds()
			w.after(time.Minute)
			assert.Equal(t, Unwatched, w.status().Phase)
			w.define(true, "v1")
			w.create("a")
			w.after(2 * time.Minute)
			w.isRight()
		})
	}
}

// Kinds of Kubernetes itself need no definition.
func TestStory_ABuiltInKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldOptions{policy: Required})
		defer w.close()
		options := w.kinds.Options(configMaps, Required, informer.Options{})
		maps := informer.New[*configMap](w.server.Client(), "configmaps", options)
		w.server.CreateMap("a")
		stop := background(maps.Run)
		defer stop()
		synctest.Wait()
		assert.Len(t, maps.GetStore().ListKeys(), 1, "even before Run of Kinds")
	})
}

// The kind of another API server is shown by its APIService. The server may be down: that is no
// reason to forget the objects.
func TestStory_AnAggregatedKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldOptions{policy: Optional, aggregated: true})
		defer w.close()
		w.start()
		w.after(time.Hour)
		assert.Empty(t, w.requests())
		service := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": "v1.example.com"},
			"spec":     map[string]any{"service": map[string]any{"name": "other"}},
		}}
		require.NoError(t, w.server.Register(apitest.Resource{Group: group.Group,
			Version: group.Version, Kind: websiteKind.Kind, Plural: "websites", Namespaced: true}))
		require.NoError(t, w.server.Create(service))
		w.serves(true)
		w.create("a")
		w.after(time.Second)
		w.handlerSaw("add a")
		down := w.server.Faults().Fail(0, ofWebsites, apierrors.NewServiceUnavailable("down"))
		w.server.Faults().Break(ofWebsites, apitest.CutStream)
		w.after(time.Hour)
		w.handlerSaw()
		down()
		w.after(time.Minute)
		w.isRight()
		w.handler.take()
		require.NoError(t, w.server.Delete(service))
		w.serves(false)
		w.after(5 * time.Second)
		w.handlerSaw("tombstone a")
	})
}

// The options are for one reflector: a second one, of another informer or of another namespace,
// would share its state, so its requests fail.
func TestOptions_AreForOneReflector(t *testing.T) {
	inBubble(t, worldOptions{policy: Optional}, func(w *world) {
		options := w.kinds.Options(websites, Optional, informer.Options{})
		c, err := client.New[*Website](w.server.Config(), websites, client.Options{})
		require.NoError(w.t, err)
		first := informer.New[*Website](c.REST(), "websites", options)
		second := informer.New[*Website](c.REST(), "websites", options)
		many := namespaces.New[*Website](c.REST(), "websites", namespaces.Options{
			Options:    w.kinds.Options(websites, Optional, informer.Options{}),
			Namespaces: []string{"a", "b"},
		})
		for _, run := range []func(context.Context){first.Run, second.Run, many.Run} {
			defer background(run)()
			w.settle()
		}
		assert.NoError(w.t, first.Health().Reflector.LastError)
		assert.ErrorIs(w.t, second.Health().Reflector.LastError, errReused)
		assert.ErrorIs(w.t, many.Err(), errReused, "of one of the namespaces")
		assert.Equal(w.t, 2, w.status().Informers, "each is counted once")
	})
}
