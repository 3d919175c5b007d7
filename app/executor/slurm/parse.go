package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// queueFormat asks squeue for these fields, each with a bar behind it. The name
// is last: those of other people's jobs may hold bars.
const queueFormat = "JobID:|,ArrayJobID:|,ArrayTaskID:|,State:|,exit_code:|,RestartCnt:|,SubmitTime:|,StartTime:|,EndTime:|,NodeList:|,Reason:|,Name:|"

// accountFormat asks sacct for these.
const accountFormat = "JobIDRaw,JobID,State,ExitCode,Submit,Start,End,NodeList,Reason,JobName"

// largestIndex is the highest index of an array's task that Slurm knows.
const largestIndex = 4_000_000

// parseQueue reads what squeue prints. A line that makes no sense is passed
// over: it is of somebody's job with a strange name, or else the job is as if
// squeue did not know it.
func parseQueue(text, prefix string) []record {
	var all []record
	for line := range strings.Lines(text) {
		fields, ok := fieldsOf(line, 12)
		if !ok || !ours(strings.TrimSuffix(fields[11], "|"), prefix) {
			continue
		}
		base := record{
			id: fields[0], array: fields[1],
			started: parseTime(fields[7]), submitted: parseTime(fields[6]), ended: parseTime(fields[8]),
			node: fields[9], reason: fields[10],
			row: row{Name: strings.TrimSuffix(fields[11], "|")},
		}
		base.setState(fields[3])
		status, _ := strconv.Atoi(fields[4])
		base.code, base.signal = status>>8&0xff, status&0x7f
		base.restarts, _ = strconv.Atoi(fields[5])
		all = appendRows(all, base, fields[2])
	}
	return all
}

// parseAccount reads what sacct prints.
func parseAccount(text, prefix string) []record {
	var all []record
	for line := range strings.Lines(text) {
		fields, ok := fieldsOf(line, 10)
		if !ok || !ours(fields[9], prefix) {
			continue
		}
		array, tasks, isArray := strings.Cut(fields[1], "_")
		if !isArray {
			tasks = "N/A"
		}
		base := record{
			id: fields[0], array: array,
			submitted: parseTime(fields[4]), started: parseTime(fields[5]), ended: parseTime(fields[6]),
			node: fields[7], reason: fields[8],
			row: row{Name: fields[9]},
		}
		base.setState(fields[2])
		code, signal, _ := strings.Cut(fields[3], ":")
		base.code, _ = strconv.Atoi(code)
		base.signal, _ = strconv.Atoi(signal)
		all = appendRows(all, base, tasks)
	}
	return all
}

func fieldsOf(line string, n int) ([]string, bool) {
	fields := strings.SplitN(strings.TrimRight(line, "\n"), "|", n)
	if len(fields) < n {
		return nil, false
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields, isNumber(fields[0])
}

func ours(name, prefix string) bool { return strings.HasPrefix(name, prefix+"-") }

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// setState takes the first word of a state. What follows in CANCELLED by 1001
// says who did it.
func (r *record) setState(text string) {
	state, rest, _ := strings.Cut(text, " ")
	r.state = strings.TrimSuffix(state, "+") // cut short
	if by, ok := strings.CutPrefix(rest, "by "); ok {
		r.by = by
	}
}

// appendRows appends a record for each task of an array that one line is about.
func appendRows(all []record, base record, tasks string) []record {
	if tasks == "N/A" || tasks == "" {
		base.array = ""
		return append(all, base)
	}
	spans, err := parseTasks(tasks)
	if err != nil {
		return all
	}
	for _, s := range spans {
		for i := s.first; i <= s.last; i += s.step {
			r := base
			r.Index = i
			all = append(all, r)
		}
	}
	return all
}

type span struct{ first, last, step int }

// parseTasks reads 3, [3], [0-4%2], [1,3-9:2] and the like. Index 0 is none of
// ours.
func parseTasks(text string) ([]span, error) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	text, _, _ = strings.Cut(text, "%")
	var spans []span
	total := 0
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseSpan(part)
		if err != nil {
			return nil, err
		}
		if total += (s.last-s.first)/s.step + 1; total > largestIndex {
			return nil, fmt.Errorf("array tasks %.40q are too many", text)
		}
		spans = append(spans, s)
	}
	return spans, nil
}

func parseSpan(text string) (s span, err error) {
	s.step = 1
	text, step, stepped := strings.Cut(text, ":")
	first, last, isRange := strings.Cut(text, "-")
	s.first, err = strconv.Atoi(first)
	s.last = s.first
	if err == nil && isRange {
		s.last, err = strconv.Atoi(last)
	}
	if err == nil && stepped {
		s.step, err = strconv.Atoi(step)
	}
	if err != nil || s.first < 0 || s.last < s.first || s.step < 1 || s.last > largestIndex {
		return s, fmt.Errorf("array tasks %.40q make no sense", text)
	}
	return s, nil
}

// parseTime reads seconds since 1970; anything else, such as N/A or Unknown,
// is no time.
func parseTime(text string) time.Time {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
