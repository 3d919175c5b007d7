package app

import (
	"math/rand/v2"
	"slices"
	"testing"

	"molrun/app/test/must"
)

func TestCirclesAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		graph [][]int
		want  []int
	}{
		"empty":            {nil, nil},
		"chain":            {[][]int{{1}, {2}, {}}, nil},
		"diamond":          {[][]int{{1, 2}, {3}, {3}, nil}, nil},
		"itself":           {[][]int{nil, {1}}, []int{1}},
		"two":              {[][]int{{1}, {0}}, []int{0, 1}},
		"behind a way in":  {[][]int{{1}, {2}, {3}, {1}}, []int{1, 2, 3}},
		"in another part":  {[][]int{{1}, nil, {3}, {2}}, []int{2, 3}},
		"twice the same":   {[][]int{{1, 1}, nil}, nil},
		"beside dead ends": {[][]int{{1, 2}, nil, {1, 0}}, []int{0, 2}},
	} {
		must.Equal(t, name, circleOf(len(tt.graph), func(i int) []int { return tt.graph[i] }), tt.want)
	}
}

// TestLongChain is longer than a stack of calls should be, and would take for ever if a
// number were followed again.
func TestLongChain(t *testing.T) {
	const n = 200_000
	wide := func(i int) []int { return []int{min(i+1, n-1), min(i+2, n-1)} }
	if got := circleOf(n-1, func(i int) []int { return slices.DeleteFunc(wide(i), func(to int) bool { return to >= n-1 }) }); got != nil {
		t.Errorf("found %d numbers in a chain", len(got))
	}
	must.Equal(t, "found", len(circleOf(n, func(i int) []int { return []int{(i + 1) % n} })), n)
}

func TestRandomGraphs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	circles := 0
	for range 2000 {
		n := 1 + rng.IntN(12)
		graph := make([][]int, n)
		for range rng.IntN(2 * n) {
			i := rng.IntN(n)
			graph[i] = append(graph[i], rng.IntN(n))
		}
		found := circleOf(n, func(i int) []int { return graph[i] })
		for i, at := range found {
			if to := found[(i+1)%len(found)]; !slices.Contains(graph[at], to) {
				t.Fatalf("%v: %v is no circle", graph, found)
			}
		}
		if (found != nil) != reachesItself(graph) {
			t.Fatalf("%v: found %v", graph, found)
		}
		if found != nil {
			circles++
		}
	}
	if circles < 200 || circles > 1800 {
		t.Errorf("%d of 2000 have circles", circles)
	}
}

// reachesItself tries all ways.
func reachesItself(graph [][]int) bool {
	for i := range graph {
		seen, next := map[int]bool{}, slices.Clone(graph[i])
		for ; len(next) > 0; next = next[1:] {
			if next[0] == i {
				return true
			}
			if !seen[next[0]] {
				seen[next[0]] = true
				next = append(next, graph[next[0]]...)
			}
		}
	}
	return false
}
