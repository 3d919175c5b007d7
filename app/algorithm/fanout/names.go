package fanout

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"molrun/app/base/naming"
)

// maxBatchName leaves space after the batch name for the suffix that distinguishes its
// jobs.
const (
	maxBatchName = 150
	maxRowName   = 200
)

// nameRows names the jobs: as given by the table, otherwise after the batch and the file
// or record, otherwise after the batch and the job's number.
func (r *Rows) nameRows(batch string) {
	if n := utf8.RuneCountInString(batch); n > maxBatchName {
		r.fault([]any{"batchName"}, "value", fmt.Sprintf("use at most %d characters, not %d: the names of the batch's jobs begin with it", maxBatchName, n))
		return
	}
	r.Names = make([]string, len(r.Settings))
	taken := map[string]int{batch: -1}
	for i := range r.Names {
		r.useTableName(i, taken)
	}
	repeats := map[string]int{}
	for i, name := range r.Names {
		if name == "" {
			r.Names[i] = unique(r.derive(batch, i), taken, repeats)
			taken[r.Names[i]] = i
		}
	}
}

// useTableName uses the name that a table gives a job.
func (r *Rows) useTableName(row int, taken map[string]int) {
	for k := range r.all {
		s := &r.all[k]
		e := s.entries[row]
		if e.name == "" {
			continue
		}
		msg, kind := naming.CheckName(e.name), "value"
		if first, found := taken[e.name]; found && msg == "" {
			kind, msg = "taken", "choose a name other than the name of the batch"
			if first >= 0 {
				msg = fmt.Sprintf("%q is already the name of line %d", e.name, s.entries[first].line)
			}
		}
		if msg != "" {
			r.fault(append(s.at(), e.line, nameColumn), kind, fmt.Sprintf("line %d, column %q: %s", e.line, nameColumn, msg))
			continue
		}
		r.Names[row], taken[e.name] = e.name, row
	}
}

// derive returns a name for a job based on its origin.
func (r *Rows) derive(batch string, row int) string {
	number := fmt.Sprint(row + 1)
	label := number
	for _, s := range r.all {
		if l := plain(s.entries[row].label); l != "" {
			label = l
			break
		}
	}
	name := cutText(batch+"-"+label, maxRowName)
	if naming.CheckName(name) != "" {
		return batch + "-" + number
	}
	return name
}

// unique returns the name, with a numeric suffix if it is taken. Numbering continues from
// the last suffix used for that name.
func unique(name string, taken, repeats map[string]int) string {
	one := name
	for {
		if _, found := taken[one]; !found {
			return one
		}
		repeats[name]++
		suffix := fmt.Sprintf("-%d", repeats[name]+1)
		one = cutText(name, maxRowName-len(suffix)) + suffix
	}
}

// plain replaces characters that are awkward in names and paths.
func plain(label string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("-_.+", r) {
			return r
		}
		return '_'
	}, label), "_.")
}

// cutText truncates text to n characters.
func cutText(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}
