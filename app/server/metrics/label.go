package metrics

import (
	"sync"

	"molrun/app/algorithm/placement"
)

// load holds the number of jobs on an executor and the resources they use.
type load struct {
	jobs int
	used placement.Resources
}

type loads struct {
	mu sync.Mutex
	of map[string]load
}

func (l *loads) set(executor string, now load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]load{}
	}
	l.of[executor] = now
}

func (l *loads) get(executor string) load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[executor]
}

// other is the label of all values beyond the limit.
const other = "other"

// limited limits the number of values of a label.
type limited struct {
	most    int
	any     bool // accept the first values seen; otherwise only offered ones
	offered func() []string
	mu      sync.RWMutex
	known   map[string]bool
}

func (l *limited) allow(values []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]bool{}
	}
	for _, v := range values {
		if len(l.known) < l.most {
			l.known[v] = true
		}
	}
}

// add adds a value and reports whether it is new.
func (l *limited) add(value string) bool {
	if l.has(value) {
		return false
	}
	l.allow([]string{value})
	return true
}

func (l *limited) has(value string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.known[value]
}

// of returns the label of a value.
func (l *limited) of(value string) string {
	if l.has(value) {
		return value
	}
	if l.any {
		l.allow([]string{value})
	} else if l.offered != nil {
		l.allow(l.offered()) // they might have changed
	}
	if l.has(value) {
		return value
	}
	return other
}
