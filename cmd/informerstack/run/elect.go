// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
)

// election holds the flags of leader election, which are those of Kubernetes components.
type election struct {
	elect         bool
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
	lock          string
	name          string
	namespace     string
	identity      string
}

func (e *election) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&e.elect, "leader-elect", false,
		"reconcile only while this process is the leader; it always watches")
	flags.DurationVar(&e.leaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"how long other candidates wait after the last renewal before they take over")
	flags.DurationVar(&e.renewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"how long a leader tries to renew its lease before it stops leading")
	flags.DurationVar(&e.retryPeriod, "leader-elect-retry-period", 2*time.Second,
		"the time between two attempts")
	flags.StringVar(&e.lock, "leader-elect-resource-lock", resourcelock.LeasesResourceLock,
		"leases, endpoints, configmaps, endpointsleases or configmapsleases")
	flags.StringVar(&e.name, "leader-elect-resource-name", "informerstack",
		"the `name` of the lock object")
	flags.StringVar(&e.namespace, "leader-elect-resource-namespace", "kube-system",
		"the `namespace` of the lock object")
	flags.StringVar(&e.identity, "leader-elect-identity", "",
		"the `name` of this process in the election (default: host name and a random suffix)")
}

// elector returns a candidate that reports changes of the leader to out, or nil if there is no
// election.
func (e *election) elector(
	config *rest.Config, out io.Writer, observed *observation,
) (*leaderelection.LeaderElector, error) {
	if !e.elect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "informerstack"
	}
	identity := cmp.Or(e.identity, fmt.Sprintf("%s_%s", host, uuid.NewUUID()))
	lock, err := resourcelock.NewFromKubeconfig(e.lock, e.namespace, e.name,
		resourcelock.ResourceLockConfig{Identity: identity}, config, e.renewDeadline)
	if err != nil {
		return nil, cli.Fail(cli.Usage, "--leader-elect-resource-lock: %w", err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		Name:            e.name,
		LeaseDuration:   e.leaseDuration,
		RenewDeadline:   e.renewDeadline,
		RetryPeriod:     e.retryPeriod,
		ReleaseOnCancel: true,
		Rejoin:          true,
		Metrics:         observed.election(e.name),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {
				fmt.Fprintf(out, "%s (this process) has stopped leading.\n",
					printable.Text(identity))
			},
			OnNewLeader: func(leader string) {
				switch leader {
				case "":
					fmt.Fprintln(out, "There is no leader.")
				case identity:
					fmt.Fprintf(out, "%s (this process) is the leader.\n", printable.Text(leader))
				default:
					fmt.Fprintf(out, "%s is the leader, this process is on standby.\n",
						printable.Text(leader))
				}
			},
		},
	})
	if err != nil {
		return nil, cli.Fail(cli.Usage, "--leader-elect: %w", err)
	}
	if observed != nil {
		observed.handler.AddElection(e.name, elector)
	}
	return elector, nil
}
