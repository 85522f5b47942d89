// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/reflector"
)

// newLister returns an informer of the group's Leases.
func (s *Shards) newLister() informer.SharedIndexInformer {
	type lease = *coordinationv1.Lease
	lister := informer.New[lease](s.config.Client, "leases", informer.Options{
		Namespace: s.config.Namespace, LabelSelector: GroupLabel + "=" + s.config.Name,
		// Without its answer this process would know no other member.
		Reflector: reflector.Options{ListDeadline: s.config.LeaseDuration},
		WrapListerWatcher: func(
			_ context.Context, lw reflector.ListerWatcher, _ runtime.Object,
		) reflector.ListerWatcher {
			return &listFirst{ListerWatcher: lw}
		},
	})
	_, err := lister.AddTypedEventHandler(informer.TypedResourceEventHandlerFuncs[lease]{
		AddFunc: s.saw,
		UpdateFunc: func(older, newer lease) {
			if !sameVersion(older, newer) {
				s.saw(newer)
			}
		},
		DeleteFunc: func(informer.DeletedObject[lease]) { s.wakeUp() },
	}, informer.HandlerOptions{})
	if err != nil {
		panic(err) // the informer is new
	}
	return lister
}

// listFirst has a list before each watch. A watch could continue in another history, unnoticed: if
// the server was restored from a copy while this process was cut off, and has come to the version
// from which the watch is to continue, that watch brings no change up to there.
type listFirst struct {
	reflector.ListerWatcher
	watched atomic.Bool // since the last list
}

// WatchWithContext implements reflector.ListerWatcher. A streaming list is a list, too.
func (l *listFirst) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	if again := l.watched.Swap(true); again && options.SendInitialEvents == nil {
		return nil, apierrors.NewResourceExpired("a watch of the Leases follows a list only")
	}
	return l.ListerWatcher.WatchWithContext(ctx, options)
}

// ListStream implements reflector.StreamLister.
func (l *listFirst) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	if !listwatch.IsQuestion(options) {
		l.watched.Store(false)
	}
	return reflector.ListPage(ctx, l.ListerWatcher, &coordinationv1.Lease{}, options, each)
}

// IsWatchListSemanticsUnSupported implements reflector.WatchListRefuser.
func (l *listFirst) IsWatchListSemanticsUnSupported() bool {
	refuser, ok := l.ListerWatcher.(reflector.WatchListRefuser)
	return ok && refuser.IsWatchListSemanticsUnSupported()
}

// saw notes a version of a Lease. The manager looks at it, unless it is only a renewal.
func (s *Shards) saw(lease *coordinationv1.Lease) {
	if !s.leases.isMember(lease.Name) {
		s.wakeUp()
		return
	}
	s.mu.Lock()
	changed := s.peerLocked(lease.Name, "").list(lease, time.Now())
	s.mu.Unlock()
	if changed {
		s.wakeUp()
	}
}

// synced returns the version up to which this process has seen the Leases, and whether the informer
// shows an older one now: then the server was restored from a copy.
func (s *Shards) synced() (version string, back bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version = s.lister.GetStore().LastStoreSyncResourceVersion()
	if back = newer(s.shown, version); !back {
		s.shown = version
	}
	return s.shown, back
}

// view is what this process has seen of the Leases. Everything up to version is in it.
type view struct {
	version string
	back    bool                             // it is of another history: M3
	shards  []*coordinationv1.Lease          // nil if a shard has no Lease
	members map[string]*coordinationv1.Lease // by name
}

func (s *Shards) read() view {
	version, back := s.synced()
	v := view{
		version: version, back: back,
		shards:  make([]*coordinationv1.Lease, len(s.slots)),
		members: map[string]*coordinationv1.Lease{},
	}
	for _, obj := range s.lister.GetStore().List() {
		lease := obj.(*coordinationv1.Lease)
		if shard, ok := s.leases.numbers[lease.Name]; ok {
			v.shards[shard] = lease
		} else if s.leases.isMember(lease.Name) {
			v.members[lease.Name] = lease
		}
	}
	return v
}

// stored returns the Lease of a shard as this process has seen it.
func (s *Shards) stored(shard Shard) *coordinationv1.Lease {
	key := s.config.Namespace + "/" + s.leases.shardName(shard)
	obj, ok, err := s.lister.GetStore().GetByKey(key)
	if err != nil || !ok {
		return nil
	}
	return obj.(*coordinationv1.Lease)
}
