package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// row is what became of the mutants of one package.
type row struct {
	Package string
	counts  map[outcome]int
	alive   []mutant
}

func (r *row) count(m mutant, o outcome) {
	if r.counts == nil {
		r.counts = map[outcome]int{}
	}
	r.counts[o]++
	if o == survived {
		r.alive = append(r.alive, m)
	}
}

// planted counts all that compiled.
func (r *row) planted() int {
	return r.counts[killed] + r.counts[timedOut] + r.counts[survived] + r.counts[equivalent]
}

// share is the percentage killed of those that a test could kill.
func (r *row) share() string {
	dead := r.counts[killed] + r.counts[timedOut]
	if dead+r.counts[survived] == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", 100*dead/(dead+r.counts[survived]))
}

// report is the table by package.
type report struct{ rows []row }

func (r *report) add(one row) { r.rows = append(r.rows, one) }

// write prints the table, then the survivors.
func (r *report) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "package\tplanted\tkilled\ttimed out\tsurvived\tequivalent\tnot compiled\tshare")
	all := row{Package: "all"}
	for _, one := range r.rows {
		one.write(t)
		for o, n := range one.counts {
			if all.counts == nil {
				all.counts = map[outcome]int{}
			}
			all.counts[o] += n
		}
		all.alive = append(all.alive, one.alive...)
	}
	all.write(t)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range all.alive {
		fmt.Fprintf(w, "\nsurvived at %s:%d\n%s\n", m.File, m.Line, m.key())
	}
	return nil
}

func (r *row) write(w io.Writer) {
	c := r.counts
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Package, r.planted(), c[killed], c[timedOut], c[survived], c[equivalent], c[uncompiled], r.share())
}
