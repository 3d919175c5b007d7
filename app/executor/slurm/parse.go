package slurm

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// queueFormat lists the fields for squeue, each followed by a bar. The name comes last,
// because names of other users' jobs can contain bars.
const queueFormat = "JobID:|,ArrayJobID:|,ArrayTaskID:|,State:|,exit_code:|,RestartCnt:|,SubmitTime:|,StartTime:|,EndTime:|,NodeList:|,Reason:|,Partition:|,Name:|"

// accountFormat lists the fields for sacct.
const accountFormat = "JobIDRaw,JobID,State,ExitCode,Submit,Start,End,NodeList,Reason,Partition,JobName"

// largestArrayIndex is Slurm's highest index of an array task.
const largestArrayIndex = 4_000_000

// parseQueue parses the output of squeue. It skips invalid lines: they belong to another
// user's job with a strange name, or their job counts as unknown to squeue.
func parseQueue(text, prefix string) []jobRecord {
	var all []jobRecord
	for line := range strings.Lines(text) {
		fields, ok := fieldsOf(line, 13)
		if !ok {
			continue
		}
		title := strings.TrimSuffix(fields[12], "|")
		if !isOurs(title, prefix) {
			continue
		}
		base := jobRecord{
			ID: fields[0], Array: fields[1],
			Started: parseTime(fields[7]), Submitted: parseTime(fields[6]), Ended: parseTime(fields[8]),
			Node: fields[9], Reason: fields[10], Partition: fields[11], Title: title,
			TaskID: TaskID{Name: unlabelled(title, prefix)},
		}
		base.setState(fields[3])
		status, _ := strconv.Atoi(fields[4])
		base.Code, base.Signal = status>>8&0xff, status&0x7f
		base.Restarts, _ = strconv.Atoi(fields[5])
		all = appendRows(all, base, fields[2])
	}
	return all
}

// parseAccount parses the output of sacct.
func parseAccount(text, prefix string) []jobRecord {
	var all []jobRecord
	for line := range strings.Lines(text) {
		fields, ok := fieldsOf(line, 11)
		if !ok || !isOurs(fields[10], prefix) {
			continue
		}
		array, tasks, isArray := strings.Cut(fields[1], "_")
		if !isArray {
			tasks = "N/A"
		}
		base := jobRecord{
			ID: fields[0], Array: array,
			Submitted: parseTime(fields[4]), Started: parseTime(fields[5]), Ended: parseTime(fields[6]),
			Node: strings.TrimPrefix(fields[7], "None assigned"), Reason: fields[8],
			Partition: fields[9], Title: fields[10],
			TaskID: TaskID{Name: unlabelled(fields[10], prefix)},
		}
		base.setState(fields[2])
		code, signal, _ := strings.Cut(fields[3], ":")
		base.Code, _ = strconv.Atoi(code)
		base.Signal, _ = strconv.Atoi(signal)
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

func isOurs(name, prefix string) bool { return strings.HasPrefix(name, prefix+"-") }

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// setState sets the first word of a state, and the user from "CANCELLED by 1001".
func (r *jobRecord) setState(text string) {
	state, rest, _ := strings.Cut(text, " ")
	r.State = strings.TrimSuffix(state, "+") // truncated by sacct
	if by, ok := strings.CutPrefix(rest, "by "); ok {
		r.By = by
	}
}

// appendRows appends a jobRecord for each array task in a line.
func appendRows(all []jobRecord, base jobRecord, tasks string) []jobRecord {
	if tasks == "N/A" || tasks == "" {
		base.Array = ""
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

type indexSpan struct{ first, last, step int }

// parseTasks parses 3, [3], [0-4%2], [1,3-9:2] and similar forms.
func parseTasks(text string) ([]indexSpan, error) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	text, _, _ = strings.Cut(text, "%")
	var spans []indexSpan
	total := 0
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseIndexSpan(part)
		if err != nil {
			return nil, err
		}
		if total += (s.last-s.first)/s.step + 1; total > largestArrayIndex {
			return nil, fmt.Errorf("too many array tasks in %.40q", text)
		}
		spans = append(spans, s)
	}
	return spans, nil
}

func parseIndexSpan(text string) (s indexSpan, err error) {
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
	if err != nil || s.first < 0 || s.last < s.first || s.step < 1 || s.last > largestArrayIndex {
		return s, fmt.Errorf("invalid array tasks %.40q", text)
	}
	return s, nil
}

// parseTime parses seconds since 1970. Anything else, such as N/A or Unknown, is the zero
// time.
func parseTime(text string) time.Time {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
