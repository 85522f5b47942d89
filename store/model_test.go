// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/storemodel"
)

// subjects are our store, with its laws, and client-go's.
func subjects(t testing.TB) []storemodel.Subject {
	indexers := storemodel.Indexers[Indexers](storemodel.First)
	indexers[NamespaceIndex] = MetaNamespaceIndexFunc
	ours := New(MetaNamespaceKeyFunc, Options{Indexers: indexers}).(*cache)
	theirs := clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc,
		storemodel.Indexers[clientgo.Indexers](storemodel.First))
	return []storemodel.Subject{{
		Store: ours,
		AddIndexers: func(funcs map[string]storemodel.IndexFunc) error {
			return ours.AddIndexers(storemodel.Indexers[Indexers](funcs))
		},
		Transact: func(changes []storemodel.Change) {
			var txns []Transaction
			for _, c := range changes {
				txns = append(txns, Transaction{c.Pod, TransactionType(c.Type)})
			}
			require.Nil(t, ours.Transaction(txns...))
		},
		Laws: func() { checkLaws(t, lawsOf(ours)) },
	}, {
		Store: theirs,
		AddIndexers: func(funcs map[string]storemodel.IndexFunc) error {
			return theirs.AddIndexers(storemodel.Indexers[clientgo.Indexers](funcs))
		},
		Transact: func(changes []storemodel.Change) {
			var txns []clientgo.Transaction
			for _, c := range changes {
				kind := clientgo.TransactionType(c.Type)
				txns = append(txns, clientgo.Transaction{Object: c.Pod, Type: kind})
			}
			require.Nil(t, theirs.(clientgo.TransactionStore).Transaction(txns...))
		},
	}}
}

// Random operations leave our store, client-go's and a searched map with the same content.
func TestModel(t *testing.T) {
	storemodel.Play(t, 40, 1500, func(t *testing.T) []storemodel.Subject { return subjects(t) })
}
