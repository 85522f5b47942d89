// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector/outage"
)

// troubles are errors that a sick member gets for good.
var troubles = map[string]error{
	"403":    apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil),
	"404":    apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, ""),
	"503":    apierrors.NewServiceUnavailable("the backend is not there"),
	"500":    errDown,
	"decode": errors.New("cannot decode the list"),
}

// company is a number of well and sick reflectors of one server.
type company struct {
	server, sick *failingServer
	trouble      error
	reflectors   []*Reflector // the well ones
}

// together runs body while well and sick reflectors run.
func together(
	t *testing.T, well, sick int, trouble error, group *outage.Group, body func(*company),
) (sickRequests int) {
	c := &company{newFailingServer(nil), newFailingServer(trouble), trouble, nil}
	meet(t, group, append(times(well, c.server), times(sick, c.sick)...), func(all []*Reflector) {
		c.reflectors = all[:well]
		body(c)
	})
	return c.sick.count()
}

// hiccup takes the server away, then lets it refuse all requests for a while, as one that starts.
// It returns how long each well reflector then needs.
func (c *company) hiccup(away, refuses time.Duration) (took []time.Duration) {
	c.server.fail(errDown)
	c.sick.fail(errDown)
	time.Sleep(away)
	c.sick.fail(c.trouble)
	c.server.fail(troubles["403"])
	time.Sleep(refuses)
	c.server.fail(nil)
	return backAfter(c.reflectors)
}

// hiccups takes the server away for a random time, again and again, over three hours.
func (c *company) hiccups(seed uint64, longest time.Duration) (took []time.Duration) {
	source := rand.New(rand.NewPCG(seed, 0))
	random := func(d time.Duration) time.Duration { return time.Duration(source.Int64N(int64(d))) }
	for range 40 {
		took = append(took, c.hiccup(random(longest), random(3*time.Second))...)
		time.Sleep(2*time.Minute + random(2*time.Minute))
	}
	slices.Sort(took)
	return took
}

// Well members are as soon current after an outage, however many sick peers they have, and the sick
// ones ask hardly more often than on their own.
func TestOutage_SickPeers(t *testing.T) {
	const sick = 5
	for _, well := range []int{1, 5} {
		for name, trouble := range troubles {
			for _, longest := range []time.Duration{6 * time.Second, 2 * time.Minute} {
				var took []time.Duration
				requests := together(t, well, sick, trouble, &outage.Group{}, func(c *company) {
					took = c.hiccups(1, longest)
				})
				median, slowest := took[len(took)/2], took[len(took)-1]
				without := together(t, well, sick, trouble, nil, func(c *company) {
					c.hiccups(1, longest)
				})
				t.Logf("%d well, %d with %s, up to %v: median %v, slowest %v; "+
					"%d requests of the sick, without a Group %d",
					well, sick, name, longest, median, slowest, requests, without)
				assert.LessOrEqual(t, median, 3*time.Second, name)
				assert.LessOrEqual(t, slowest, 10*time.Second, name)
				assert.LessOrEqual(t, requests, without*11/10, name) // the end of an outage is news
			}
		}
	}
}

// A sick member does not ask more often because its peers are well, or list again and again.
func TestOutage_WellPeersDoNotWakeSickOnes(t *testing.T) {
	for name, trouble := range troubles {
		for end, last := range map[string][]watch.Event{
			"closed": nil, "expired": {errorEvent("expired")},
		} {
			requests := func(group *outage.Group) int {
				return together(t, 5, 1, trouble, group, func(c *company) {
					for range 600 {
						time.Sleep(10 * time.Second)
						c.server.endWatches(last...)
					}
				})
			}
			alone, together := requests(nil), requests(&outage.Group{})
			t.Logf("%s, %s: %d requests, without a Group %d", name, end, together, alone)
			assert.LessOrEqual(t, together, alone*11/10, name, end)
			assert.GreaterOrEqual(t, together, alone*8/10, name, end)
		}
	}
}

// A reflector that is alone in its Group is back soon, too.
func TestOutage_OneReflector(t *testing.T) {
	together(t, 1, 0, nil, &outage.Group{}, func(c *company) {
		took := c.hiccups(1, 4*time.Minute)
		t.Logf("median %v, slowest %v", took[len(took)/2], took[len(took)-1])
		assert.LessOrEqual(t, took[len(took)/2], 3*time.Second)
		assert.LessOrEqual(t, took[len(took)-1], 10*time.Second)
	})
}

// A server may ask for any wait before the next request; a minute counts.
func TestOutage_RetryAfterIsBounded(t *testing.T) {
	together(t, 1, 0, nil, &outage.Group{}, func(c *company) {
		for range 2 {
			c.server.fail(apierrors.NewTooManyRequests("never", math.MaxInt32))
			time.Sleep(time.Second)
			c.server.fail(nil)
			require.LessOrEqual(t, backAfter(c.reflectors)[0], time.Minute+2*time.Second)
		}
	})
}
