package app

import (
	"slices"
	"strconv"
	"strings"
)

// circleOf returns a circle of a graph, nil if there is none: numbers of which each leads to
// the next, and the last to the first. next lists where each of 0 to n-1 leads.
func circleOf(n int, next func(int) []int) []int {
	s := search{next: next, state: make([]state, n)}
	for i := range n {
		if found := s.ringsFrom(i); found != nil {
			return found
		}
	}
	return nil
}

// maxShown bounds how many things Text names.
const maxShown = 10

// circleText names the things of a circle: "a", for "b", for "a".
func circleText(found []int, names []string) string {
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
	done // no circle can be reached
)

// search goes down the graph. It keeps the path itself, since a chain may be longer than
// a stack should be.
type search struct {
	next  func(int) []int
	state []state
	path  []step
}

// step is a number on the path, and where it leads that is still to be followed.
type step struct {
	at   int
	rest []int
}

func (s *search) ringsFrom(start int) []int {
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
			return s.circle(to)
		}
	}
	return nil
}

func (s *search) enter(i int) {
	s.state[i] = onPath
	s.path = append(s.path, step{i, s.next(i)})
}

// circle returns the path from a number on it to its end.
func (s *search) circle(first int) (all []int) {
	for i := len(s.path) - 1; ; i-- {
		all = append(all, s.path[i].at)
		if s.path[i].at == first {
			slices.Reverse(all)
			return all
		}
	}
}
