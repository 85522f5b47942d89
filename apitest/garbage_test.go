// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/apitest"
)

// clan is ConfigMaps that own each other. In texts, b<a is owned by a, b<a! blocks the deletion of
// a, a~ has a finalizer, and a* is marked as deleted.
type clan struct {
	t      *testing.T
	server *apitest.Server
	uids   map[string]types.UID
}

func (c *clan) make(text string) {
	names := strings.Split(text, "<")
	name, held := strings.CutSuffix(names[0], "~")
	cm := configMap("default", name)
	if held {
		cm.Finalizers = []string{"example.com/hold"}
	}
	cm.OwnerReferences = c.refs(names[1:])
	require.NoError(c.t, c.server.Create(cm))
	c.uids[name] = cm.UID
}

func (c *clan) refs(owners []string) (refs []metav1.OwnerReference) {
	for _, owner := range owners {
		name, blocks := strings.CutSuffix(owner, "!")
		refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name,
			UID: c.uids[name], BlockOwnerDeletion: &blocks})
	}
	return refs
}

// do deletes an object with a policy, lets it change its owners, or removes its finalizers.
func (c *clan) do(text string) {
	verb, object, _ := strings.Cut(text, " ")
	name, owners, _ := strings.Cut(object, "<")
	at := strings.TrimSuffix(mapsPath+"/"+name, "/all")
	switch verb {
	case "free":
		send(c.t, c.server, "PATCH", at, "application/merge-patch+json",
			`{"metadata":{"finalizers":null}}`)
	case "own":
		refs, err := json.Marshal(c.refs(strings.Split(owners, "<")))
		require.NoError(c.t, err)
		send(c.t, c.server, "PATCH", at, "application/merge-patch+json",
			`{"metadata":{"ownerReferences":`+string(refs)+`}}`)
	default:
		send(c.t, c.server, "DELETE", at+"?propagationPolicy="+verb, "", "")
	}
	synctest.Wait()
}

func (c *clan) String() string {
	got := send(c.t, c.server, "GET", mapsPath, "", "")
	var list corev1.ConfigMapList
	require.NoError(c.t, json.Unmarshal([]byte(got.body), &list))
	var all []string
	for _, cm := range list.Items {
		text := cm.Name
		for _, f := range cm.Finalizers {
			text += map[string]string{"example.com/hold": "~"}[f]
		}
		if cm.DeletionTimestamp != nil {
			text += "*"
		}
		for _, ref := range cm.OwnerReferences {
			text += "<" + ref.Name
			if *ref.BlockOwnerDeletion {
				text += "!"
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// The policies of a deletion, as a cluster's garbage collector carries them out.
func TestGarbage_Policies(t *testing.T) {
	for _, c := range []struct{ what, before, do, after string }{
		{"dependents follow their owner", "a b<a c<b d", "Background a", "d"},
		{"one owner is left", "a b c<a<b", "Background a", "b c<b"},
		{"no owner is left", "a b c<a<b", "Background a, Background b", ""},
		{"the owner still exists", "a~ b<a", "Background a", "a~* b<a"},
		{"a finalizer holds the dependent", "a b~<a c<b", "Background a", "b~*<a c<b"},

		{"the owner waits", "a b~<a! c<a! d<a", "Foreground a", "a* b~*<a!"},
		{"the owner waited", "a b~<a! c<a! d<a", "Foreground a, free b", ""},
		{"dependents wait for theirs", "a b<a! c~<b!", "Foreground a", "a* b*<a! c~*<b!"},
		{"and do not wait longer", "a b<a! c~<b!", "Foreground a, free c", ""},
		{"nothing blocks the owner", "a b~<a", "Foreground a", "b~*<a"},
		{"another owner keeps the dependent", "a b c<a!<b", "Foreground a", "b c<b"},
		{"the dependent unblocks the owner", "a b~<a!", "Foreground a, own b<a", "b~*<a"},
		{"two that wait for each other", "a b<a!", "own a<b!, Foreground a", ""},
		{"a collection", "a b<a! c~<a!", "Foreground all", "a* c~*<a!"},

		{"the dependents stay", "a b<a c<b", "Orphan a", "b c<b"},
		{"the other owner stays, too", "a b c<a<b", "Orphan a", "b c<b"},
		{"a finalizer holds the owner", "a~ b<a", "Orphan a", "a~* b"},
		{"the policy changes", "a~ b<a", "Foreground a, Background a", "a~*"},
	} {
		t.Run(c.do+": "+c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := apitest.NewServer(apitest.Options{GarbageCollection: true})
				require.NoError(t, s.StartPipe())
				defer s.Close()
				objects := &clan{t: t, server: s, uids: map[string]types.UID{}}
				for text := range strings.FieldsSeq(c.before) {
					objects.make(text)
				}
				synctest.Wait()
				for text := range strings.SplitSeq(c.do, ", ") {
					objects.do(text)
				}
				assert.Equal(t, c.after, objects.String())
				require.NoError(t, s.CheckLaws())
			})
		})
	}
}

// An owner is an object with the kind, the name and the uid of a reference, in the namespace of the
// dependent. An object stays while the server does not know a kind.
func TestGarbage_Owners(t *testing.T) {
	bubble(t, apitest.Options{GarbageCollection: true}, func(t *testing.T, s *apitest.Server) {
		owner := configMap("default", "owner")
		require.NoError(t, s.Create(owner))
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}
		require.NoError(t, s.Create(volume))
		const nobody = "11111111-2222-3333-4444-555555555555"
		made := map[string]bool{}
		try := func(at, apiVersion, kind, name string, uid types.UID) {
			body := fmt.Sprintf(`{"metadata":{"name":"d%d","ownerReferences":[{"apiVersion":"%s",`+
				`"kind":"%s","name":"%s","uid":"%s"}]}}`, len(made), apiVersion, kind, name, uid)
			require.Equal(t, 201, send(t, s, "POST", at, "", body).code)
			synctest.Wait()
			at = fmt.Sprintf("%s/d%d", at, len(made))
			made[at] = send(t, s, "GET", at, "", "").code == 200
		}
		const volumes = "/api/v1/persistentvolumes"
		try(mapsPath, "v1", "ConfigMap", "owner", owner.UID)
		try(mapsPath, "v1", "ConfigMap", "owner", nobody)
		try(mapsPath, "v1", "ConfigMap", "other", owner.UID)
		try(mapsPath, "v1", "Secret", "owner", owner.UID)
		try("/api/v1/namespaces/kube-public/configmaps", "v1", "ConfigMap", "owner", owner.UID)
		try(mapsPath, "v1", "PersistentVolume", "wide", volume.UID)
		try(volumes, "v1", "PersistentVolume", "wide", volume.UID)
		try(volumes, "v1", "ConfigMap", "owner", owner.UID)
		try(mapsPath, "example.org/v1", "Gadget", "g", nobody)
		assert.Equal(t, map[string]bool{
			mapsPath + "/d0": true, mapsPath + "/d1": false, mapsPath + "/d2": false,
			mapsPath + "/d3": false, "/api/v1/namespaces/kube-public/configmaps/d4": false,
			mapsPath + "/d5": true, volumes + "/d6": true, volumes + "/d7": true,
			mapsPath + "/d8": true,
		}, made)

		// The kind becomes known, and the owner does not exist.
		const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		send(t, s, "POST", definitions, "", `{"metadata":{"name":"gadgets.example.org"},"spec":{`+
			`"group":"example.org","scope":"Cluster","names":{"plural":"gadgets","kind":"Gadget"},`+
			`"versions":[{"name":"v1","served":true}]}}`)
		synctest.Wait()
		assert.Equal(t, 404, send(t, s, "GET", mapsPath+"/d8", "", "").code)

		// An owner goes with its kind.
		var gadget metav1.PartialObjectMetadata
		got := send(t, s, "POST", "/apis/example.org/v1/gadgets", "",
			`{"apiVersion":"example.org/v1","kind":"Gadget","metadata":{"name":"g"}}`)
		require.NoError(t, json.Unmarshal([]byte(got.body), &gadget))
		try(mapsPath, "example.org/v1", "Gadget", "g", gadget.UID)
		require.True(t, made[mapsPath+"/d9"])
		send(t, s, "DELETE", definitions+"/gadgets.example.org", "", "")
		synctest.Wait()
		assert.Equal(t, 404, send(t, s, "GET", mapsPath+"/d9", "", "").code)
		require.NoError(t, s.CheckLaws())
	})
}

// Objects keep their owners when their definition changes, in the old form and in the new one.
func TestGarbage_DefinitionChanges(t *testing.T) {
	bubble(t, apitest.Options{GarbageCollection: true}, func(t *testing.T, s *apitest.Server) {
		d := gadgets(t, `[{"name":"v1","served":true,"storage":true}]`)
		require.NoError(t, s.Create(d))
		owner := gadget(t, "v1", "")
		require.NoError(t, s.Create(owner))
		for _, name := range []string{"kept", "changed", "freed"} {
			owned := gadget(t, "v1", "")
			owned.SetName(name)
			owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1",
				Kind: "Gadget", Name: "a", UID: owner.GetUID()}})
			require.NoError(t, s.Create(owned))
		}
		synctest.Wait()
		d.Object["spec"] = gadgets(t, `[{"name":"v1","served":true},`+
			`{"name":"v2","served":true,"storage":true}]`).Object["spec"]
		require.NoError(t, s.Update(d))
		const path, merge = "/apis/example.org/v2/gadgets/", "application/merge-patch+json"
		send(t, s, "PATCH", path+"changed", merge, `{"metadata":{"labels":{"l":""}}}`)
		send(t, s, "PATCH", path+"freed", merge, `{"metadata":{"ownerReferences":null}}`)
		require.NoError(t, s.CheckLaws())
		require.NoError(t, s.Delete(owner))
		synctest.Wait()
		require.NoError(t, s.CheckLaws())
		left, err := s.List("gadgets.example.org", "")
		require.NoError(t, err)
		require.Len(t, left, 1)
		assert.Equal(t, "freed", left[0].GetName())
	})
}
