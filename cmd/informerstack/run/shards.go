// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/shard"
	"example.com/informerstack/store"
)

// maxShards bounds --shards: the server has a Lease for each.
const maxShards = 10_000

// sharing holds the flags of shards.
type sharing struct {
	count         int
	by            string
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
	drainTimeout  time.Duration
	name          string
	namespace     string
	identity      string
}

func (s *sharing) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&s.count, "shards", 0,
		"share the objects with other processes of this group, in this `number` of shards: list, "+
			"watch and reconcile only those of the own ones; all processes need the same number")
	flags.StringVar(&s.by, "shards-by", "uid",
		"uid or namespace: which value of an object decides on its shard")
	flags.DurationVar(&s.leaseDuration, "shards-lease-duration", shard.DefaultLeaseDuration,
		"how long the others wait after the last renewal of a process before they take its shards")
	flags.DurationVar(&s.renewDeadline, "shards-renew-deadline", shard.DefaultRenewDeadline,
		"how long a process tries to renew its lease before it gives up its shards")
	flags.DurationVar(&s.retryPeriod, "shards-retry-period", shard.DefaultRetryPeriod,
		"the time between two renewals")
	flags.DurationVar(&s.drainTimeout, "shards-drain-timeout", shard.DefaultDrainTimeout,
		"how long a running reconcile may continue when its shard moves")
	flags.StringVar(&s.name, "shards-resource-name", "informerstack",
		"the `name` of the group, which its Leases begin with")
	flags.StringVar(&s.namespace, "shards-resource-namespace", "kube-system",
		"the `namespace` of the Leases")
	flags.StringVar(&s.identity, "shards-identity", "",
		"the `name` of this process in the group, which gets a random suffix (default: host name)")
}

// share returns this process's part of the group, or nil without --shards.
func (s *sharing) share(config *rest.Config, observed *observation) (*shared, error) {
	if s.count == 0 {
		return nil, nil
	}
	client, err := leaseClient(config)
	if err != nil {
		return nil, cli.Fail(cli.Config, "use configuration: %w", err)
	}
	shards, err := shard.New(shard.Config{
		Name: s.name, Namespace: s.namespace, Client: client, Count: s.count, Identity: s.identity,
		LeaseDuration: s.leaseDuration, RenewDeadline: s.renewDeadline,
		RetryPeriod: s.retryPeriod, DrainTimeout: s.drainTimeout,
	})
	if err != nil {
		return nil, cli.Fail(cli.Usage, "--shards: %w", err)
	}
	if err := observed.shares(s.name, shards); err != nil {
		return nil, err
	}
	by := shard.ByUID
	if s.by == "namespace" {
		by = shard.ByNamespace
	}
	return &shared{shards: shards, by: by, ready: make(chan struct{})}, nil
}

// leaseClient returns a client of Leases without a rate limit: neither renewals nor moves wait.
func leaseClient(config *rest.Config) (rest.Interface, error) {
	own := rest.AddUserAgent(rest.CopyConfig(config), "shards")
	own.QPS = -1
	own.APIPath, own.GroupVersion = "/apis", &coordinationv1.SchemeGroupVersion
	own.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(own)
}

// shared is this process's part of a group. Its methods add nothing if it is nil.
type shared struct {
	shards *shard.Shards
	by     shard.By
	ready  chan struct{} // closed when this process first has its part
}

// loaded is closed when an informer has all that it is to hold.
func (s *shared) loaded(objects informer.SharedInformer) <-chan struct{} {
	if s == nil {
		return objects.HasSyncedChecker().Done()
	}
	return s.ready
}

// options restricts an informer to the shards of this process.
func (s *shared) options(options informer.Options) informer.Options {
	if s == nil {
		return options
	}
	return s.shards.Options(s.by, options)
}

// reconcile calls next only for the keys of the shards of this process.
func (s *shared) reconcile(
	objects store.Indexer, next controller.ReconcileFunc[string],
) controller.ReconcileFunc[string] {
	if s == nil {
		return next
	}
	return shard.Reconcile(s.shards, shard.ValueIn(objects, s.by), next)
}

// show adds the group to the page of an observation, which looks for keys in the shards of objects.
func (s *shared) show(observed *observation, objects store.Indexer) {
	if observed != nil && s != nil {
		observed.handler.AddShards(s.shards, shard.ValueIn(objects, s.by))
	}
}

// movePeriod is the time between two looks at the group. Moves in between are one line.
const movePeriod = 250 * time.Millisecond

// run works in the group until ctx is done and every shard is released, and reports each change of
// the owners to out.
func (s *shared) run(ctx context.Context, out io.Writer) error {
	left := make(chan error, 1)
	go func() { left <- s.shards.Run(ctx) }()
	ticker := time.NewTicker(movePeriod)
	defer ticker.Stop()
	last, ready := "", false
	for {
		select {
		case err := <-left:
			if err != nil {
				return cli.Fail(cli.Usage, "--shards: %w", err)
			}
			if last != "" {
				fmt.Fprintln(out, "This process has left the group: it owns no shard.")
			}
			return nil
		case <-ticker.C:
			status := s.shards.Status()
			if line := describeGroup(status); line != last && status.Identity != "" {
				fmt.Fprintln(out, line)
				last = line
			}
			if status.Ready && !ready {
				close(s.ready)
				ready = true
			}
		}
	}
}

// describeGroup says how many shards each member of the group owns.
func describeGroup(status shard.Status) string {
	own := 0
	var members []string
	for _, m := range status.Members {
		member := fmt.Sprintf("%s %d", printable.Text(m.Identity), m.Shards)
		if m.Identity == status.Identity {
			own = m.Shards
			member += " (this process)"
		}
		members = append(members, member)
	}
	free := 0
	for _, s := range status.Shards {
		if s.Owner == "" {
			free++
		}
	}
	if free > 0 {
		members = append(members, fmt.Sprintf("none %d", free))
	}
	return fmt.Sprintf("This process owns %d of %s. Owners: %s.", own,
		cli.Count(len(status.Shards), "shard"), strings.Join(members, ", "))
}
