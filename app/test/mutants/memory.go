package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// outcome is what became of a mutant.
type outcome string

const (
	killed     outcome = "killed"
	timedOut   outcome = "timed out"
	survived   outcome = "survived"
	uncompiled outcome = "not compiled"
	equivalent outcome = "equivalent"
)

// memory keeps outcomes between runs, one line of JSON each.
type memory struct {
	dir   string
	log   *os.File
	known map[string]outcome
}

type remembered struct {
	Mutant  string  `json:"mutant"`
	Outcome outcome `json:"outcome"`
}

// openMemory reads what earlier runs found in the module, unless it starts afresh.
func openMemory(module string, fresh bool) (*memory, error) {
	m := &memory{dir: filepath.Join(module, ".cache", "mutants"), known: map[string]outcome{}}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, err
	}
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if fresh {
		flags |= os.O_TRUNC
	}
	var err error
	if m.log, err = os.OpenFile(m.file("outcomes.jsonl"), flags, 0o600); err != nil {
		return nil, err
	}
	for s := bufio.NewScanner(m.log); s.Scan(); {
		var r remembered
		if json.Unmarshal(s.Bytes(), &r) == nil { // a torn line is planted again
			m.known[r.Mutant] = r.Outcome
		}
	}
	return m, nil
}

func (m *memory) file(name string) string { return filepath.Join(m.dir, name) }

func (m *memory) of(key string) (outcome, bool) {
	o, ok := m.known[key]
	return o, ok
}

func (m *memory) note(key string, o outcome) error {
	m.known[key] = o
	return json.NewEncoder(m.log).Encode(remembered{key, o})
}

func (m *memory) close() { m.log.Close() }

//go:embed equivalent.txt
var equivalents string

// readEquivalents reads mutants that change nothing a test could see: a line names
// the mutant, the indented lines below it say why. Lines with # are comments.
func readEquivalents(text string) (map[string]string, error) {
	known := map[string]string{}
	mutant := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			if mutant != "" && known[mutant] == "" {
				return nil, fmt.Errorf("equivalent.txt gives no reason for %q", mutant)
			}
			mutant = line
			known[mutant] = ""
		case mutant == "":
			return nil, fmt.Errorf("equivalent.txt gives a reason for no mutant: %q", line)
		default:
			known[mutant] += strings.TrimSpace(line) + " "
		}
	}
	if mutant != "" && known[mutant] == "" {
		return nil, fmt.Errorf("equivalent.txt gives no reason for %q", mutant)
	}
	return known, nil
}

// staleEquivalents returns the listed mutants of a package that no longer exist,
// sorted: the code has changed, and they have to be judged anew.
func staleEquivalents(known map[string]string, pkg string, all []mutant) []string {
	stale := map[string]bool{}
	for key := range known {
		if file, _, _ := strings.Cut(key, " "); path.Dir(file) == pkg {
			stale[key] = true
		}
	}
	for _, m := range all {
		delete(stale, m.key())
	}
	return slices.Sorted(maps.Keys(stale))
}
