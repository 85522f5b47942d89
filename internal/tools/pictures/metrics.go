// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/informerstack/observe/metrics"
)

// seriesGroups are the groups of series by the beginning of their names. A name belongs to the
// first group that matches.
var seriesGroups = []struct {
	prefix, words string
	column        int
}{
	{"reflector_", "the way from the server", 0},
	{"informer_", "the copy and its handlers", 1},
	{"workqueue_", "keys for the workers", 1},
	{"controller_runtime_", "reconciles", 2},
	{"controller_", "keys and dead letters", 2},
	{"leader_election_", "the lease", 0},
}

var seriesName = regexp.MustCompile(`fqName: "([^"]+)"`)

// allSeries returns the sorted names of the series of package metrics.
func allSeries() ([]string, error) {
	m, err := metrics.New(prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		m.Describe(descriptions)
	}()
	var names []string
	for d := range descriptions {
		if name := seriesName.FindStringSubmatch(d.String()); name != nil {
			names = append(names, name[1])
		}
	}
	if len(names) == 0 {
		return nil, errors.New("package metrics describes no series")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// drawMetrics lists the series of each piece.
func drawMetrics(string) ([]byte, error) {
	names, err := allSeries()
	if err != nil {
		return nil, err
	}
	c := &canvas{
		width: 980, height: 530, title: "The series of each piece",
		desc: "The reflector, the informer, the workqueue, the controller and the elector " +
			"have series under the names that dashboards use.",
	}
	c.text("name", 30, 36, fmt.Sprintf("%d series, by the piece that they measure", len(names)))
	ys := []int{54, 54, 54}
	for _, group := range seriesGroups {
		var short, rest []string
		for _, name := range names {
			if end, ok := strings.CutPrefix(name, group.prefix); ok {
				short = append(short, end)
			} else {
				rest = append(rest, name)
			}
		}
		names = rest
		x, y := 20+group.column*318, ys[group.column]
		height := 52 + len(short)*18
		ys[group.column] += height + 14
		c.rect("card", x, y, 304, height, 10)
		c.text("name", x+14, y+24, group.prefix+"…")
		c.anchored("end", "small dim", x+292, y+24, group.words)
		for i, name := range short {
			c.text("mono", x+14, y+50+i*18, name)
		}
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("the series %v are in no group", names)
	}
	return c.svg(), nil
}
