// SPDX-License-Identifier: Apache-2.0

package served

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
	"example.com/informerstack/client"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
)

// An ordinary informer asks for an absent kind again and again, as client-go's does. One that
// follows its kind does not.
func TestDifference_RequestsForAnAbsentKind(t *testing.T) {
	for impl, want := range map[string][2]int{
		"ours": {0, 0}, "ours, ordinary": {300, 450}, "client-go": {300, 450},
	} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := testserver.New(t, apitest.Options{})
				kinds, err := New(Config{Client: server.Config()})
				require.NoError(t, err)
				sites, err := client.New[*Website](server.Config(), websites, client.Options{})
				require.NoError(t, err)
				var stop func()
				switch impl {
				case "client-go":
					stop = testserver.Run(t.Context(), cache.NewSharedIndexInformer(
						cache.NewListWatchFromClient(sites.REST(), "websites", "",
							fields.Everything()), &Website{}, 0, nil).RunWithContext)
				case "ours":
					options := kinds.Options(websites, Required, informer.Options{})
					stop = testserver.Run(t.Context(), kinds.Run,
						informer.New[*Website](sites.REST(), "websites", options).Run)
				default:
					stop = testserver.Run(t.Context(), informer.New[*Website](sites.REST(),
						"websites", informer.Options{}).Run)
				}
				time.Sleep(time.Hour)
				count := len(server.Requests(ofWebsites))
				t.Log("requests in an hour:", count)
				assert.GreaterOrEqual(t, count, want[0])
				assert.LessOrEqual(t, count, want[1])
				stop()
			})
		})
	}
}
