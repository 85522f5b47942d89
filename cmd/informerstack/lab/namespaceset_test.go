// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// With Settings.ByNamespace, the pipeline follows the namespaces that the page names. One that is
// removed leaves the store, and the server as it is. One that is forbidden delays no other, and its
// error is shown. The store is behind only for a change in a namespace that it follows.
func TestNamespaces(t *testing.T) {
	story(t, func(w *world) {
		assert.Equal(t, errNoNamespaces.Error(), w.do(`{"do":"namespaces","names":["x"]}`))
		assert.Nil(t, w.frame().Reflector.Namespaces)
		w.mustDo(`{"do":"create","key":"batch/job"}`)
		w.mustDo(`{"do":"settings","byNamespace":true}`)
		w.after(5 * time.Second)
		assert.Contains(t, w.do(`{"do":"settings","custom":true}`), "exclude")
		assert.Equal(t, errNoQueue.Error(), w.do(`{"do":"resync"}`))
		assert.NotEmpty(t, w.do(`{"do":"namespaces","names":[""]}`))

		f := w.frame()
		assert.Equal(t, "Parts", f.Queue.Kind)
		assert.Equal(t, 2, f.Store.Objects)
		assert.Equal(t, 3, f.Server.Objects)
		w.mustDo(`{"do":"change","key":"batch/job"}`)
		assert.Empty(t, w.lab.moving(w.frame()), "nothing of it is followed")

		for range 2 {
			w.mustDo(`{"do":"namespaces","names":["default","batch"]}`)
			w.after(5 * time.Second)
			f = w.frame()
			assert.Equal(t, 3, f.Store.Objects)
			assert.Empty(t, w.lab.moving(f))
			assert.Equal(t, "batch", f.Reflector.Namespaces[0].Name)
			assert.True(t, f.Reflector.Namespaces[0].Synced)
			assert.NotEqual(t, f.Reflector.Namespaces[0].RV, f.Reflector.Namespaces[1].RV)

			w.mustDo(`{"do":"namespaces","names":["default"]}`)
			w.after(5 * time.Second)
			assert.Equal(t, 2, w.frame().Store.Objects)
			assert.Equal(t, 3, w.frame().Server.Objects)
		}

		w.mustDo(`{"do":"forbid","name":"batch"}`)
		w.mustDo(`{"do":"namespaces","names":["default","batch"]}`)
		w.after(5 * time.Second)
		f = w.frame()
		assert.True(t, f.Reflector.Namespaces[0].LeftOut)
		assert.Contains(t, f.Reflector.Namespaces[0].Error, "forbidden")
		assert.Empty(t, w.lab.moving(f))
		w.mustDo(`{"do":"watch","fault":"stall"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		f = w.frame()
		f.Server.Fault = ""
		assert.Equal(t, "the store does not follow the server", w.lab.moving(f))
		w.mustDo(`{"do":"watch","fault":"cut"}`)
		w.mustDo(`{"do":"forbid"}`)
		w.after(2 * time.Minute)
		assert.Equal(t, 3, w.frame().Store.Objects)
		assert.Empty(t, w.lab.moving(w.frame()))

		w.mustDo(`{"do":"forbid","name":"default"}`)
		w.mustDo(`{"do":"lesson","id":"onadd","step":-1,"solved":true}`)
		w.playsToEnd()
		assert.Equal(t, lessonObjects, w.frame().Store.Objects)
		assert.Nil(t, w.frame().Reflector.Namespaces)
		w.mustDo(`{"do":"lesson"}`)
		w.after(20 * time.Second)
		assert.Len(t, w.frame().Reflector.Namespaces, 1)
		assert.Equal(t, 2, w.frame().Store.Objects, "a lesson ends what is forbidden")
	})
}
