// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that changes and fails at random for some hours, in every way it can: once it is well
// again, the store holds what the server holds. Ours must also survive a store that fails at
// random, where client-go loses changes, and connections that die in silence, where client-go waits
// for ever.
func TestModel_StoreEndsUpEqual(t *testing.T) {
	for seed := range uint64(20) {
		for _, impl := range []string{"ours", "client-go"} {
			for _, streaming := range []bool{true, false} {
				t.Run(
					fmt.Sprintf("seed=%d/streaming=%v/impl=%s", seed, streaming, impl),
					func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { runModel(t, seed, impl, streaming) })
					},
				)
			}
		}
	}
}

func runModel(t *testing.T, seed uint64, impl string, streaming bool) {
	reported = func(error, string) {}
	random := rand.New(rand.NewPCG(seed, 1))
	server := newCollection()
	server.chaos = rand.New(rand.NewPCG(seed, 2))
	target := &mapStore{}
	if impl == "ours" {
		server.stalls = true
		storeFaults := rand.New(rand.NewPCG(seed, 3))
		target.err = func() error {
			if storeFaults.IntN(20) == 0 {
				return errors.New("store failed")
			}
			return nil
		}
	}
	stop := background(runOf(impl, server, target, Options{
		Name: "test", UseWatchList: &streaming, ResyncPeriod: time.Minute,
		WatchListPageSize: int64(seed % 3),
	}))

	alive := map[string]bool{}
	for range 300 {
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
		name := string(rune('a' + random.IntN(12)))
		switch n := random.IntN(20); {
		case n == 0:
			server.compact()
		case n == 1:
			server.disconnect()
		case !alive[name]:
			server.create(name)
			alive[name] = true
		case n < 8:
			server.delete(name)
			alive[name] = false
		default:
			server.update(name)
		}
	}
	server.set(func() { server.chaos = nil })
	target.mu.Lock()
	target.err = nil
	target.mu.Unlock()
	time.Sleep(15 * time.Minute) // a watch may be stalled, and a wait long
	server.update("z")
	synctest.Wait()
	require.Equal(t, server.state(), target.state())
	stop()
}
