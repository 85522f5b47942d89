// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/apitest"
)

// model is the naive server: the state after each resourceVersion, name -> version of the object.
type model struct {
	states map[int]map[string]int
	now    map[string]int
	rv     int
}

func (m *model) set(name string, rv int) {
	m.now = maps.Clone(m.now)
	if rv == 0 {
		delete(m.now, name)
		m.rv++
	} else {
		m.now[name], m.rv = rv, rv
	}
	m.states[m.rv] = m.now
}

// at returns the state at a version; writes of other kinds do not change it.
func (m *model) at(rv int) map[string]int {
	for ; rv > 0; rv-- {
		if state, ok := m.states[rv]; ok {
			return state
		}
	}
	return map[string]int{}
}

// replay applies the frames of a watch to the state at its start.
type replay struct {
	from  int
	mu    sync.Mutex
	state map[string]int
	last  int
	bad   error
	ended string
}

type frame struct {
	Type   string
	Object struct {
		Metadata struct{ Name, ResourceVersion string }
		Code     int
	}
}

func (r *replay) apply(f frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rv, _ := strconv.Atoi(f.Object.Metadata.ResourceVersion)
	name := f.Object.Metadata.Name
	_, known := r.state[name]
	if f.Type == "ERROR" {
		r.ended = fmt.Sprint(f.Object.Code)
		return
	}
	switch {
	case rv <= r.last && f.Type != "BOOKMARK":
		r.bad = fmt.Errorf("%s %s at %d comes after %d", f.Type, name, rv, r.last)
	case f.Type == "BOOKMARK":
	case known != (f.Type != "ADDED"):
		r.bad = fmt.Errorf("%s %s at %d, but known=%v", f.Type, name, rv, known)
	case f.Type == "DELETED":
		delete(r.state, name)
	default:
		r.state[name] = rv
	}
	r.last = max(r.last, rv)
}

// eachFrame calls apply for each event of a watch of the ConfigMaps, until its end.
func eachFrame(ctx context.Context, s *apitest.Server, query string, apply func(frame)) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		s.URL+mapsPath+"?watch=true&"+query, nil)
	if err != nil {
		return
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }()
	for decoder := json.NewDecoder(resp.Body); ; {
		var f frame
		if decoder.Decode(&f) != nil {
			return
		}
		apply(f)
	}
}

// Random writes, compactions and a replica that lags: a watch from any version, applied to the
// state at that version, gives the present state, or it fails with 410; and a list at any version
// shows the state at that version, or fails with 410.
func TestModel_WatchesReplayTheLog(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			bubble(t, apitest.Options{HistoryLen: 64}, func(t *testing.T, s *apitest.Server) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				runModel(t, ctx, s, rand.New(rand.NewPCG(seed, 1)))
				cancel()
				synctest.Wait()
			})
		})
	}
}

func runModel(t *testing.T, ctx context.Context, s *apitest.Server, rng *rand.Rand) {
	rv, err := strconv.Atoi(s.ResourceVersion())
	require.NoError(t, err)
	m := &model{states: map[int]map[string]int{rv: {}}, now: map[string]int{}, rv: rv}
	first := rv
	var watches []*replay
	catchUp := func() {}
	for step := range 200 {
		switch dice := rng.IntN(100); {
		case dice < 80:
			m.write(t, s, rng, step)
		case dice < 94:
			r := &replay{from: first + rng.IntN(m.rv-first+1)}
			r.state, r.last = maps.Clone(m.at(r.from)), r.from
			watches = append(watches, r)
			query := fmt.Sprintf("allowWatchBookmarks=true&resourceVersion=%d", r.from)
			go eachFrame(ctx, s, query, r.apply)
		case dice < 96:
			s.Faults().Compact()
		case dice < 98:
			catchUp()
			catchUp = s.Faults().Lag()
		default:
			catchUp()
		}
		require.NoError(t, s.CheckLaws())
	}
	catchUp()
	synctest.Wait()
	for _, r := range watches {
		r.mu.Lock()
		require.NoError(t, r.bad, "watch from %d", r.from)
		if r.ended == "" {
			assert.Equal(t, m.now, r.state, "watch from %d", r.from)
		} else {
			assert.Equal(t, "410", r.ended)
		}
		r.mu.Unlock()
	}
	m.checkLists(t, s, first)
}

// write does one random write, which may fail as the model says.
func (m *model) write(t *testing.T, s *apitest.Server, rng *rand.Rand, step int) {
	name := string(rune('a' + rng.IntN(6)))
	cm := configMap("default", name, "step", fmt.Sprint(step))
	_, exists := m.now[name]
	switch rng.IntN(3) {
	case 0:
		err := s.Create(cm)
		require.Equal(t, exists, err != nil, "create %s: %v", name, err)
	case 1:
		err := s.Update(cm)
		require.Equal(t, !exists, err != nil, "update %s: %v", name, err)
	case 2:
		err := s.Delete(cm)
		require.Equal(t, !exists, err != nil, "delete %s: %v", name, err)
		if exists {
			m.set(name, 0)
		}
		return
	}
	if cm.ResourceVersion != "" {
		rv, err := strconv.Atoi(cm.ResourceVersion)
		require.NoError(t, err)
		require.Equal(t, m.rv+1, rv, "L1")
		m.set(name, rv)
	}
}

func (m *model) checkLists(t *testing.T, s *apitest.Server, first int) {
	for rv := first; rv <= m.rv; rv++ {
		answer := send(t, s, "GET", fmt.Sprintf(
			"/api/v1/configmaps?resourceVersionMatch=Exact&resourceVersion=%d", rv), "", "")
		if answer.code == http.StatusGone {
			continue
		}
		var list corev1.ConfigMapList
		require.NoError(t, json.Unmarshal([]byte(answer.body), &list))
		got := map[string]int{}
		for _, item := range list.Items {
			got[item.Name], _ = strconv.Atoi(item.ResourceVersion)
		}
		assert.Equal(t, m.at(rv), got, "list at %d", rv)
		assert.Equal(t, fmt.Sprint(rv), list.ResourceVersion)
	}
}
