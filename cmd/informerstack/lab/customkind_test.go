// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
)

// With Settings.Custom, the pipeline sends no request for Widgets until they are defined. The
// page's commands are about Widgets, and the page says whether the kind is served. Other settings
// restore the resource of the program.
func TestCustomKind(t *testing.T) {
	story(t, func(w *world) {
		assert.Equal(t, errNotCustom.Error(), w.do(`{"do":"define","on":true}`))
		assert.Nil(t, w.frame().Reflector.Kind)
		widgets := apitest.Match{Resource: "widgets.example.com"}

		w.mustDo(`{"do":"settings","custom":true}`)
		w.after(20 * time.Second)
		f := w.frame()
		assert.Equal(t, "absent", f.Reflector.Kind.Phase)
		assert.Contains(t, f.Reflector.Kind.Reason, "no CustomResourceDefinition widgets")
		assert.Empty(t, w.lab.moving(f))
		assert.Zero(t, f.Store.Objects)
		assert.Empty(t, w.server.Requests(widgets))
		assert.NotEmpty(t, w.do(`{"do":"create"}`), "the server does not know the kind")

		for range 2 {
			w.mustDo(`{"do":"define","on":true}`)
			for _, do := range []string{"create", "change"} {
				w.mustDo(`{"do":%q,"key":"default/a"}`, do)
			}
			w.mustDo(`{"do":"create"}`)
			w.after(time.Second)
			f = w.frame()
			assert.Equal(t, "serving", f.Reflector.Kind.Phase)
			assert.Equal(t, 2, f.Store.Objects)
			assert.Equal(t, 2, f.Server.Objects)
			w.mustDo(`{"do":"delete","key":"default/a"}`)
			w.after(time.Second)
			require.Equal(t, 1, w.frame().Store.Objects)

			w.mustDo(`{"do":"define","on":false}`)
			w.after(5 * time.Second)
			f = w.frame()
			assert.Equal(t, "absent", f.Reflector.Kind.Phase)
			assert.Empty(t, w.lab.moving(f))
			assert.Zero(t, f.Store.Objects)
			assert.Zero(t, f.Server.Objects)
		}

		w.mustDo(`{"do":"define","on":true}`)
		w.mustDo(`{"do":"lesson","id":"onadd","step":-1,"solved":true}`)
		w.playsToEnd()
		assert.Equal(t, lessonObjects, w.frame().Store.Objects)
		assert.Nil(t, w.frame().Reflector.Kind)
		w.mustDo(`{"do":"lesson"}`)
		w.after(20 * time.Second)
		assert.True(t, w.frame().Settings.Custom)
		assert.Equal(t, "absent", w.frame().Reflector.Kind.Phase, "a lesson deletes the definition")
	})
}
