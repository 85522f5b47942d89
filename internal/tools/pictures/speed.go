// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const benchHeader = "# package, benchmark, unit, what is compared, and client-go divided by this " +
	"stack:\n# least, median, most of %d runs. It is made of the output of make bench, by\n" +
	"# go run ./internal/tools/pictures -bench bin/bench.txt\n"

var benchmarkLine = regexp.MustCompile(
	`^Benchmark(\S+)/impl=(ours|client-go|client-go-bare)-\d+\s+\d+\s+(.*)`)

// condense makes bench.txt of the output of make bench. It compares the runs of two implementations
// pair by pair. Rates are left out, because more is better there.
func condense(output string) []byte {
	values := map[string][]float64{} // by package, benchmark, unit and implementation
	folder, runs := "", 0
	for line := range strings.Lines(output) {
		if pkg, ok := strings.CutPrefix(line, "pkg: "); ok {
			folder = strings.TrimSpace(pkg[strings.LastIndex(pkg, "/")+1:])
		}
		found := benchmarkLine.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		for words := strings.Fields(found[3]); len(words) > 1; words = words[2:] {
			value, err := strconv.ParseFloat(words[0], 64)
			if err != nil || strings.HasSuffix(words[1], "/s") {
				continue
			}
			name := strings.Join([]string{folder, found[1], words[1], found[2]}, " ")
			values[name] = append(values[name], value)
			runs = max(runs, len(values[name]))
		}
	}
	text := fmt.Appendf(nil, benchHeader, runs)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		theirs := values[name]
		ours := values[name[:strings.LastIndex(name, " ")]+" ours"]
		if strings.HasSuffix(name, " ours") || len(ours) != len(theirs) ||
			slices.Contains(ours, 0) {
			continue
		}
		ratios := make([]float64, len(ours))
		for i := range ours {
			ratios[i] = theirs[i] / ours[i]
		}
		slices.Sort(ratios)
		n := len(ratios)
		median := (ratios[(n-1)/2] + ratios[n/2]) / 2
		text = fmt.Appendf(text, "%s %.2f %.2f %.2f\n", name, ratios[0], median, ratios[n-1])
	}
	return text
}

// speedRows are the rows of the plot, by package in the order of a change's way: its words and its
// name in bench.txt.
const speedRows = `
reflector: an event from the watch to the store | reflector WatchEvent ns/op client-go
reflector: LIST of 50,000 pods over HTTP        | reflector FirstList ns/op client-go
reflector: most live memory meanwhile           | reflector FirstList peak-live-B client-go
deltafifo: Add and Pop, 8 keys wait             | deltafifo DeltaFIFO_AddPop/keys=8 ns/op client-go
deltafifo: Add and Pop, 10,000 keys wait | deltafifo DeltaFIFO_AddPop/keys=10000 ns/op client-go
deltafifo: Replace by 50,000 objects            | deltafifo DeltaFIFO_Replace ns/op client-go
RealFIFO: Add and PopBatch, 1,000 wait | deltafifo RealFIFO_AddPopBatch/keys=1000 ns/op client-go
store: Update                                   | store Update ns/op client-go
store: GetByKey                                 | store GetByKey ns/op client-go
store: ByIndex, 20 found                        | store ByIndex/index=node ns/op client-go
store: Replace of 100,000 objects               | store Replace ns/op client-go
store: memory per object, 3 indexes | store Memory/indexed=true/updated=false bytes/object client-go
informer: an event to 1 handler                 | informer FanOut/handlers=1 ns/op client-go
informer: an event to 10 handlers               | informer FanOut/handlers=10 ns/op client-go
informer: an event to 100 handlers              | informer FanOut/handlers=100 ns/op client-go
informer: first sync by LIST                    | informer InitialSync/mode=list ns/op client-go
informer: first sync by a watch | informer InitialSync/mode=watchlist ns/op client-go
workqueue: Add, Get, Done                       | workqueue AddGetDone ns/op client-go
workqueue: 8 adders, 8 workers | workqueue AddGetDone_Adders8Workers8 ns/op client-go
workqueue: a flood of keys                      | workqueue AddGetDone_Flood ns/op client-go
workqueue: AddAfter of a million keys           | workqueue AddAfter_Million ns/op client-go
workqueue: AddRateLimited, Forget               | workqueue AddRateLimitedForget ns/op client-go
controller: 1,000 keys, beside Kubernetes' loop | controller Reconcile/workers=1 ns/op client-go
controller: 1,000 keys, beside a bare loop | controller Reconcile/workers=1 ns/op client-go-bare
leaderelection: a renewal over HTTP | leaderelection Renew/lock=leases cpu-ns/op client-go
`

// plotSpeed plots bench.txt: a line from the least to the most ratio, and a dot at the median.
func plotSpeed(root string) (string, error) {
	text, err := os.ReadFile(picture(root, "bench.txt"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	y := 84
	for row := range strings.Lines(strings.TrimSpace(speedRows)) {
		words, name, _ := strings.Cut(strings.TrimSpace(row), "|")
		name = strings.TrimSpace(name)
		_, numbers, _ := strings.Cut(string(text), "\n"+name+" ")
		var least, median, most float64
		if _, err := fmt.Sscan(numbers, &least, &median, &most); err != nil {
			return "", fmt.Errorf("%s in bench.txt: %w", name, err)
		}
		colour := "k0"
		if median < 1 {
			colour = "k1"
		}
		onAxis := func(ratio float64) int { return 330 + onLogAxis(ratio, 0.5, 32, 600) }
		from, to := onAxis(least), onAxis(most)
		fmt.Fprintf(&b, `  <text class="small" x="30" y="%d">%s</text>`+"\n", y+4,
			strings.TrimSpace(words))
		fmt.Fprintf(&b, `  <rect class="%s" x="%d" y="%d" width="%d" height="3" rx="1"/>`+"\n",
			colour, from, y-1, max(to-from, 1))
		fmt.Fprintf(&b, `  <circle class="%s" cx="%d" cy="%d" r="5"/>`+"\n", colour,
			onAxis(median), y)
		fmt.Fprintf(&b, `  <text class="small dim" x="%d" y="%d">%.1f</text>`+"\n", to+12, y+4,
			median)
		y += 25
	}
	return b.String(), nil
}
