package app

import (
	"slices"
	"strconv"
	"strings"
)

// findCycle returns a cycle of a directed graph as a list of nodes, each with an edge to
// the next and the last with one to the first, or nil if there is none. The nodes are 0
// to n-1; next returns the successors of a node.
func findCycle(n int, next func(int) []int) []int {
	s := search{next: next, state: make([]state, n)}
	for i := range n {
		if found := s.cycleFrom(i); found != nil {
			return found
		}
	}
	return nil
}

// maxShown limits how many names cycleText lists.
const maxShown = 10

// cycleText lists the names in a cycle, in the form "a", for "b", for "a".
func cycleText(found []int, names []string) string {
	var text []string
	for _, i := range found[:min(len(found), maxShown)] {
		text = append(text, strconv.Quote(names[i]))
	}
	if len(found) > maxShown {
		text = append(text, "…")
	}
	return strings.Join(append(text, strconv.Quote(names[found[0]])), ", for ")
}

type state byte

const (
	unseen state = iota
	onPath
	done // reaches no cycle
)

// search is a depth-first search. It is not recursive because a path can be too long for
// the stack.
type search struct {
	next  func(int) []int
	state []state
	path  []step
}

// step is a node on the path and its unvisited successors.
type step struct {
	at   int
	rest []int
}

func (s *search) cycleFrom(start int) []int {
	if s.state[start] != unseen {
		return nil
	}
	s.enter(start)
	for len(s.path) > 0 {
		last := &s.path[len(s.path)-1]
		if len(last.rest) == 0 {
			s.state[last.at] = done
			s.path = s.path[:len(s.path)-1]
			continue
		}
		to := last.rest[0]
		last.rest = last.rest[1:]
		switch s.state[to] {
		case unseen:
			s.enter(to)
		case onPath:
			return s.cycle(to)
		}
	}
	return nil
}

func (s *search) enter(i int) {
	s.state[i] = onPath
	s.path = append(s.path, step{i, s.next(i)})
}

// cycle returns the nodes of the path from first to its end.
func (s *search) cycle(first int) (all []int) {
	for i := len(s.path) - 1; ; i-- {
		all = append(all, s.path[i].at)
		if s.path[i].at == first {
			slices.Reverse(all)
			return all
		}
	}
}
