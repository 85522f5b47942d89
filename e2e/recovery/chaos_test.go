// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"flag"
	"testing"
	"time"
)

var chaos = flag.Bool("chaos", false, "run TestChaos, which takes twenty minutes")

// many is a process with twenty informers of each implementation, which share a client, and 3,000
// objects that change all the time.
var many = setup{
	kind:            configMap,
	implementations: []string{clientGo, alone, ours},
	namespaces:      20,
	informers:       1,
	objects:         150,
	beatEvery:       500 * time.Millisecond,
	perClient:       20,
	tolerance:       5 * time.Second, // a busy server sends a backlog with pauses
}

// watchesOfEtcd has objects of a CustomResourceDefinition, on a server without watch caches.
func (s setup) watchesOfEtcd() setup {
	s.kind, s.apiServerArgs = widget, []string{"--watch-cache=false"}
	return s
}

// hurried is a process with five informers of each implementation. All follow the same objects. One
// of the objects changes every twenty milliseconds, without a pause. (With more changes, the time
// that the processors need for what was missed counts, of all 15 informers together.)
var hurried = setup{
	kind:            configMap,
	implementations: many.implementations,
	namespaces:      1,
	informers:       5,
	objects:         150,
	beatEvery:       20 * time.Millisecond,
	hurry:           true,
	perClient:       5,
	tolerance:       many.tolerance,
}

// chaosSequences run at the same time, each with servers and informers of its own.
var chaosSequences = []struct {
	name   string
	setup  func(t *testing.T) setup
	faults []fault
}{
	{"servers", always(many), []fault{
		{name: "API server killed, started after 10 s", strike: killFor(10 * time.Second)},
		{name: "API server killed, started after 60 s", strike: killFor(60 * time.Second)},
		{name: "etcd killed, started after 30 s", blind: true,
			strike: killEtcdFor(30 * time.Second)},
		{name: "429 by priority and fairness for 30 s", strike: exhaustFor(30 * time.Second)},
		{name: "API server that lags for 30 s", strike: lagFor(30 * time.Second), blind: true},
	}},
	{"network", always(many), []fault{
		{name: "connections reset", strike: reset},
		{name: "connections stalled for 60 s", strike: stallFor(60 * time.Second)},
		{name: "connections slow for 60 s", strike: slowFor(2000, 60*time.Second), blind: true},
		{name: "connections lost, new ones work after 50 s", strike: loseFor(50 * time.Second)},
	}},
	{"hurry", always(hurried), []fault{
		{name: "hurry: API server killed for 10 s", strike: killFor(10 * time.Second)},
		{name: "hurry: connections reset for 15 s", strike: resetFor(15 * time.Second)},
		{name: "hurry: 429 for 20 s", strike: throttleFor(20 * time.Second)},
		{name: "hurry: RBAC revoked for 20 s", strike: revokeFor(20 * time.Second)},
		{name: "hurry: connections reset for 30 s", strike: resetFor(30 * time.Second)},
		{name: "hurry: 429 for 10 s", strike: throttleFor(10 * time.Second)},
		{name: "hurry: API server killed for 20 s", strike: killFor(20 * time.Second)},
		{name: "hurry: RBAC revoked for 10 s", strike: revokeFor(10 * time.Second)},
		{name: "hurry: connections stalled for 20 s", strike: stallFor(20 * time.Second)},
	}},
	{"rights", always(many.watchesOfEtcd()), []fault{
		{name: "RBAC revoked for 30 s", strike: revokeFor(30 * time.Second)},
		{name: "token revoked, replaced after 30 s", strike: rotateAfter(30 * time.Second)},
		{name: "CRD deleted, created again after 30 s", strike: removeFor(30 * time.Second)},
		{name: "history compacted under watches", strike: compactAfter(20 * time.Second)},
	}},
	{"sick", always(sickPeers), []fault{
		{name: "sick peers: API server killed for 3 s", strike: killFor(3 * time.Second)},
		{name: "sick peers: API server killed for 3 s, again", strike: killFor(3 * time.Second)},
		{name: "sick peers: API server killed for 20 s", strike: killFor(20 * time.Second)},
		{name: "sick peers: connections reset for 20 s", strike: resetFor(20 * time.Second)},
	}},
	{"several", severalServers, []fault{
		{name: "several servers: API server killed for 3 s", strike: killFor(3 * time.Second)},
		{name: "several servers: API server killed for 3 s, again",
			strike: killFor(3 * time.Second)},
		{name: "several servers: API server killed for 20 s", strike: killFor(20 * time.Second)},
	}},
	{"fleet", always(fleet), []fault{
		{name: "fleet: API server killed for 60 s", fleet: time.Minute,
			strike: killFor(time.Minute)},
	}},
	{"slow", always(slowLinks), []fault{
		{name: "slow link: 32 KB/s for 60 s", asks: true, strike: slowFor(slowRate, time.Minute)},
		{name: "slow link: 32 KB/s for 50 s, API server killed for 3 s", asks: true,
			strike: slowKillFor(3*time.Second, 45*time.Second)},
	}},
}

func always(s setup) func(*testing.T) setup {
	return func(*testing.T) setup { return s }
}

// Twenty informers of each implementation meet every fault. No informer loses anything, Health is
// right at every moment, and ours are current soon after the server answers again, also beside
// informers that cannot work.
func TestChaos(t *testing.T) {
	if !*chaos {
		t.Skip("needs -chaos")
	}
	var rows table
	t.Run("together", func(t *testing.T) {
		for _, s := range chaosSequences {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				rows.add(newWorld(t, s.setup(t)).endure(s.faults))
			})
		}
	})
	t.Run("alone", func(t *testing.T) { // this process is stopped
		rows.add(newWorld(t, many).endure([]fault{
			{name: "process stopped for 60 s", strike: suspendFor(60 * time.Second)},
			{name: "process stopped for 45 s", strike: suspendFor(45 * time.Second)},
		}))
	})
	t.Log(rows.String())
	for _, r := range rows.rows {
		for _, missed := range r.misses() {
			t.Error(missed)
		}
	}
}
