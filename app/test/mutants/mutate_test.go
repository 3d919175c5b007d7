package main

import (
	"slices"
	"strings"
	"testing"
)

const example = `package a

func (s *Store[T]) Save(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if s.size+1 < limit && !s.full {
		log.Warn().Msg("nearly full")
		s.grow(true)
		s.count++
	}
	if err := s.wait(5 * time.Second); err != nil {
		return false, err
	}
	name := "a" + s.name
	return s.write(name, make([]byte, 4), 0o600)
}
`

func TestEveryOperatorIsApplied(t *testing.T) {
	all, err := mutate("a.go", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, strings.TrimPrefix(m.key(), "a.go Store.Save "))
	}
	want := []string{
		`swallow: if err := f.Sync(); err != nil { => if err := f.Sync(); err != nil {}`,
		`drop: if err := f.Sync(); err != nil { => dropped`,
		`negate: if s.size+1 < limit && !s.full { => if !(s.size+1 < limit && !s.full) {`,
		`flip: if s.size+1 < limit && !s.full { => if s.size+1 < limit || !s.full {`,
		`boundary: if s.size+1 < limit && !s.full { => if s.size+1 <= limit && !s.full {`,
		`arithmetic: if s.size+1 < limit && !s.full { => if s.size-1 < limit && !s.full {`,
		`constant: if s.size+1 < limit && !s.full { => if s.size+2 < limit && !s.full {`,
		`drop: s.grow(true) => dropped`,
		`boolean: s.grow(true) => s.grow(false)`,
		`arithmetic: s.count++ => s.count--`,
		`swallow: if err := s.wait(5 * time.Second); err != nil { => if err := s.wait(5 * time.Second); err != nil {}`,
		`drop: if err := s.wait(5 * time.Second); err != nil { => dropped`,
		`arithmetic: if err := s.wait(5 * time.Second); err != nil { => if err := s.wait(5 / time.Second); err != nil {`,
		`swallow: return s.write(name, make([]byte, 4), 0o600) => return nil`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestMutantIsKnownAfterEditsElsewhere(t *testing.T) {
	before, err := mutate("a.go", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	after, err := mutate("a.go", []byte(strings.Replace(example, "package a\n", "package a\n\nfunc first() { start() }\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range before {
		if key := after[i+1].key(); key != m.key() || after[i+1].Line == m.Line {
			t.Errorf("line %d: %s, now line %d: %s", m.Line, m.key(), after[i+1].Line, key)
		}
	}
}

func TestSampleDependsOnTheSeedAlone(t *testing.T) {
	all, err := mutate("a.go", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	names := func(list []mutant) (keys []string) {
		for _, m := range list {
			keys = append(keys, m.key())
		}
		return keys
	}
	first := names(sample(all, "1"))
	slices.Reverse(all)
	if again := names(sample(all, "1")); !slices.Equal(first, again) {
		t.Error("the same seed draws another sample")
	}
	if other := names(sample(all, "2")); slices.Equal(first, other) {
		t.Error("another seed draws the same sample")
	}
}

func TestEquivalentsNeedAReason(t *testing.T) {
	known, err := readEquivalents("# comment\na.go f drop: g() => dropped\n\tonly faster\n\tand cheaper\n")
	if err != nil || known["a.go f drop: g() => dropped"] != "only faster and cheaper " {
		t.Errorf("%v %v", known, err)
	}
	for _, text := range []string{"a\nb\n\treason\n", "a\n", "\treason\n"} {
		if _, err := readEquivalents(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestListedEquivalentsHaveTheirForm(t *testing.T) {
	known, err := readEquivalents(equivalents)
	if err != nil || len(known) == 0 {
		t.Errorf("%d equivalents, %v", len(known), err)
	}
}

func TestEquivalentsThatAreGoneAreFound(t *testing.T) {
	all, err := mutate("a/a.go", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	gone := "a/a.go Store.Save drop: s.shrink() => dropped"
	known := map[string]string{all[0].key(): "", gone: "", "a/b/c.go f drop: g() => dropped": ""}
	if got := staleEquivalents(known, "a", all); !slices.Equal(got, []string{gone}) {
		t.Errorf("gone are %q, want %q", got, gone)
	}
}
