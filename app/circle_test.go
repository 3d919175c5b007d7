package app

import (
	"slices"
	"testing"

	"molrun/app/test/must"
)

func TestCirclesAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		graph [][]int
		want  []int
	}{
		"empty":             {nil, nil},
		"chain":             {[][]int{{1}, {2}, {}}, nil},
		"diamond":           {[][]int{{1, 2}, {3}, {3}, nil}, nil},
		"itself":            {[][]int{nil, {1}}, []int{1}},
		"two":               {[][]int{{1}, {0}}, []int{0, 1}},
		"behind a way in":   {[][]int{{1}, {2}, {3}, {1}}, []int{1, 2, 3}},
		"in another part":   {[][]int{{1}, nil, {3}, {2}}, []int{2, 3}},
		"twice the same":    {[][]int{{1, 1}, nil}, nil},
		"next to dead ends": {[][]int{{1, 2}, nil, {1, 0}}, []int{0, 2}},
	} {
		must.Equal(t, name, findCycle(len(tt.graph), func(i int) []int { return tt.graph[i] }), tt.want)
	}
}

// TestLongChain searches a path too long for recursion. It would not finish if nodes were
// visited again.
func TestLongChain(t *testing.T) {
	const n = 200_000
	wide := func(i int) []int { return []int{min(i+1, n-1), min(i+2, n-1)} }
	if got := findCycle(n-1, func(i int) []int { return slices.DeleteFunc(wide(i), func(to int) bool { return to >= n-1 }) }); got != nil {
		t.Errorf("found %d numbers in a chain", len(got))
	}
	must.Equal(t, "length of a cycle through all nodes", len(findCycle(n, func(i int) []int { return []int{(i + 1) % n} })), n)
}
