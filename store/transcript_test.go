// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/storemodel"
	"example.com/informerstack/internal/tools/transcript"
)

// Every rule of a store with indexes, on ours and on client-go. The commands are those of
// player.exec.
func TestTranscript(t *testing.T) {
	for _, file := range transcript.Glob(t, "../testdata/store/*.txt") {
		for _, impl := range []string{transcript.Ours, "client-go"} {
			t.Run(file.Name+"/impl="+impl, func(t *testing.T) {
				p := &player{t: t, ours: impl == transcript.Ours}
				file.Play(t, impl, p.play)
			})
		}
	}
}

// player executes the commands of a transcript.
type player struct {
	t     *testing.T
	ours  bool
	store storemodel.Store
}

var errBroken = errors.New("broken")

// playerIndexes are the indexes that a transcript may name.
var playerIndexes = map[string]storemodel.IndexFunc{
	"namespace": MetaNamespaceIndexFunc,
	"byNode":    byNode,
	"byTag":     byTag,
	"picky": func(obj any) ([]string, error) { // fails on a pod that has the annotation broken
		switch obj.(*corev1.Pod).Annotations["broken"] {
		case "error":
			return nil, errBroken
		case "panic":
			panic(errBroken)
		}
		return []string{"fine"}, nil
	},
}

// play executes a command, and checks the laws.
func (p *player) play(cmd transcript.Command) (out string) {
	defer func() {
		if reason := recover(); reason != nil {
			out = fmt.Sprintf("panic: %v", reason)
		}
		if p.ours {
			checkLaws(p.t, &p.store.(*cache).threadSafeMap)
		}
	}()
	return p.exec(cmd)
}

func (p *player) exec(cmd transcript.Command) string {
	object := strings.Join(cmd.Args, " ")
	switch cmd.Name {
	case "new":
		p.store = p.newStore(cmd.Args)
	case "add":
		return say(p.store.Add(pod(object)))
	case "update":
		return say(p.store.Update(pod(object)))
	case "delete":
		return say(p.store.Delete(pod(object)))
	case "replace": // replace RV POD; POD; ...   RV is - for ""
		rv := strings.TrimPrefix(cmd.Arg(0), "-")
		return say(p.store.Replace(list(strings.Join(cmd.Args[1:], " ")), rv))
	case "transaction": // transaction TYPE POD; TYPE POD; ...
		return p.transaction(object)
	case "get":
		item, exists, err := p.store.GetByKey(cmd.Arg(0))
		if err != nil || !exists {
			return join("absent", err)
		}
		return describe(item)
	case "list":
		return describeAll(p.store.List(), nil)
	case "keys":
		keys := p.store.ListKeys()
		slices.Sort(keys)
		return join(strings.Join(keys, " "), nil)
	case "index":
		return describeAll(p.store.Index(cmd.Arg(0), pod(strings.Join(cmd.Args[1:], " "))))
	case "byindex":
		return describeAll(p.store.ByIndex(cmd.Arg(0), cmd.Arg(1)))
	case "indexkeys":
		keys, err := p.store.IndexKeys(cmd.Arg(0), cmd.Arg(1))
		return join(strings.Join(keys, " "), err)
	case "values":
		values := p.store.ListIndexFuncValues(cmd.Arg(0))
		slices.Sort(values)
		return fmt.Sprintf("%q", values)
	case "addindexers":
		return say(p.addIndexers(cmd.Args))
	case "maps":
		return p.maps()
	case "bookmark":
		p.store.Bookmark(cmd.Arg(0))
	case "rv":
		return fmt.Sprintf("%q", p.store.LastStoreSyncResourceVersion())
	default:
		require.Fail(p.t, "no such command", cmd.Line)
	}
	return ""
}

func (p *player) newStore(indexes []string) storemodel.Store {
	if p.ours {
		return New(MetaNamespaceKeyFunc, Options{Indexers: indexersOf[Indexers](indexes)})
	}
	return clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc,
		indexersOf[clientgo.Indexers](indexes))
}

func (p *player) addIndexers(indexes []string) error {
	if p.ours {
		return p.store.(Indexer).AddIndexers(indexersOf[Indexers](indexes))
	}
	return p.store.(clientgo.Indexer).AddIndexers(indexersOf[clientgo.Indexers](indexes))
}

// indexersOf returns the index functions of those names, in the types of either package.
func indexersOf[M ~map[string]F, F ~func(any) ([]string, error)](names []string) M {
	funcs := maps.Clone(playerIndexes)
	maps.DeleteFunc(funcs, func(name string, _ storemodel.IndexFunc) bool {
		return !slices.Contains(names, name)
	})
	return storemodel.Indexers[M](funcs)
}

func (p *player) transaction(text string) string {
	var ours []Transaction
	var ref []clientgo.Transaction
	for _, change := range strings.Split(text, ";") {
		kind, object, _ := strings.Cut(strings.TrimSpace(change), " ")
		var obj any
		if object != "nil" {
			obj = pod(object)
		}
		ours = append(ours, Transaction{obj, TransactionType(kind)})
		ref = append(ref, clientgo.Transaction{Object: obj, Type: clientgo.TransactionType(kind)})
	}
	if p.ours {
		if err := p.store.(TransactionStore).Transaction(ours...); err != nil {
			return fmt.Sprintf("%v\nmade: %v", err, err.SuccessfulIndices)
		}
	} else if err := p.store.(clientgo.TransactionStore).Transaction(ref...); err != nil {
		return fmt.Sprintf("%v\nmade: %v", err, err.SuccessfulIndices)
	}
	return ""
}

// maps prints the indexes as one would draw them.
func (p *player) maps() string {
	var names []string
	if p.ours {
		names = sortedKeys(p.store.(Indexer).GetIndexers())
	} else {
		names = sortedKeys(p.store.(clientgo.Indexer).GetIndexers())
	}
	var lines []string
	for _, name := range names {
		values := p.store.ListIndexFuncValues(name)
		slices.Sort(values)
		for _, value := range values {
			keys, _ := p.store.IndexKeys(name, value)
			lines = append(lines,
				fmt.Sprintf("indices[%q][%q] = {%s}", name, value, strings.Join(keys, ", ")))
		}
	}
	return join(strings.Join(lines, "\n"), nil)
}

func list(text string) (list []any) {
	for _, object := range strings.Split(text, ";") {
		if object = strings.TrimSpace(object); object != "" {
			list = append(list, pod(object))
		}
	}
	return list
}

func say(err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return ""
}

func join(text string, err error) string {
	switch {
	case err != nil:
		return say(err)
	case text == "":
		return "nothing"
	}
	return text
}

func describe(obj any) string {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Sprint(obj)
	}
	key, _ := MetaNamespaceKeyFunc(p)
	return key + "@" + p.ResourceVersion
}

func describeAll(list []any, err error) string {
	var words []string
	for _, obj := range list {
		words = append(words, describe(obj))
	}
	slices.Sort(words)
	return join(strings.Join(words, " "), err)
}
