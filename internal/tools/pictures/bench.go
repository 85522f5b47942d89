// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ratio is client-go's number of a benchmark divided by this stack's: the least, the median and the
// most of several runs.
type ratio struct{ least, median, most float64 }

// measured are the ratios by package, benchmark, unit and client-go's variant, with a space between
// them.
type measured map[string]ratio

const benchHeader = "# package, benchmark, unit, what is compared, and client-go divided by this " +
	"stack:\n# least, median, most of %d runs. It is made of the output of make bench, by\n" +
	"# go run ./internal/tools/pictures -bench bin/bench.txt\n"

// condense makes the committed file of the output of make bench.
func condense(output []byte) ([]byte, error) {
	values := map[string]map[string][]float64{} // by name of the ratio and implementation
	runs := 0
	folder := ""
	lines := bufio.NewScanner(bytes.NewReader(output))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 2 && words[0] == "pkg:" {
			folder = words[1][strings.LastIndex(words[1], "/")+1:]
		}
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name, implementation, ok := implementationOf(words[0])
		if !ok {
			continue
		}
		for i := 2; i+1 < len(words); i += 2 {
			if strings.HasSuffix(words[i+1], "/s") {
				continue // more is better
			}
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, fmt.Errorf("read %q: %w", lines.Text(), err)
			}
			key := folder + " " + name + " " + words[i+1]
			if values[key] == nil {
				values[key] = map[string][]float64{}
			}
			values[key][implementation] = append(values[key][implementation], value)
			runs = max(runs, len(values[key][implementation]))
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, benchHeader, runs)
	for _, key := range sortedKeys(values) {
		for _, theirs := range []string{"client-go", "client-go-bare"} {
			if r, ok := ratioOf(values[key]["ours"], values[key][theirs]); ok {
				fmt.Fprintf(&b, "%s %s %.2f %.2f %.2f\n", key, theirs, r.least, r.median, r.most)
			}
		}
	}
	return b.Bytes(), lines.Err()
}

var benchmarkName = regexp.MustCompile(`^Benchmark(.*)/impl=(ours|client-go|client-go-bare)-\d+$`)

func implementationOf(benchmark string) (name, implementation string, ok bool) {
	parts := benchmarkName.FindStringSubmatch(benchmark)
	if parts == nil {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// ratioOf compares the runs pair by pair. It reports false if there are none, or one is zero.
func ratioOf(ours, theirs []float64) (ratio, bool) {
	if len(ours) == 0 || len(ours) != len(theirs) || slices.Contains(ours, 0) {
		return ratio{}, false
	}
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = theirs[i] / ours[i]
	}
	slices.Sort(ratios)
	n := len(ratios)
	median := (ratios[(n-1)/2] + ratios[n/2]) / 2
	return ratio{ratios[0], median, ratios[n-1]}, true
}

// readMeasured reads the committed file.
func readMeasured(file string) (measured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m := measured{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var folder, name, unit, theirs string
		var r ratio
		_, err := fmt.Sscan(line, &folder, &name, &unit, &theirs, &r.least, &r.median, &r.most)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		m[strings.Join([]string{folder, name, unit, theirs}, " ")] = r
	}
	return m, nil
}
