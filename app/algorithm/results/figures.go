package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
)

// Limits on files read from the output folder, and on the text of a metric.
const (
	maxMetricsFile = 1 << 20
	maxScannedFile = 16 << 20
	maxFigureText  = 200
)

// ReadMetrics returns the metrics of a run as one JSON object: those that the program
// wrote to metrics.json, and those found in other files, which take precedence. It
// returns nil if there are none. A file that cannot be read is returned as a problem; it
// does not fail the job.
func (all Metrics) ReadMetrics(out fs.FS) (json.RawMessage, []string) {
	members, problems := programMetrics(out)
	in := &reading{out: out, tails: map[string][]byte{}, absent: map[string]bool{}}
	for _, m := range all {
		if m.source == nil {
			continue
		}
		v, err := in.figure(m.source)
		if errors.Is(err, errReportedBefore) {
			continue
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("metric %s: %v", m.Name, err))
			continue
		}
		members[m.Name] = m.scaled(v)
	}
	if len(members) == 0 {
		return nil, problems
	}
	sorted := make([]strictjson.Member, 0, len(members))
	for name, v := range members {
		sorted = append(sorted, strictjson.Member{Name: name, Value: v})
	}
	return strictjson.AppendPlainMembers(nil, sorted), problems
}

// scaled multiplies a value by the metric's factor.
func (m *Metric) scaled(v *strictjson.Value) *strictjson.Value {
	f, err := strconv.ParseFloat(v.Text, 64)
	if m.factor == 0 || v.Kind != strictjson.Number || err != nil {
		return v
	}
	f, _ = strconv.ParseFloat(strconv.FormatFloat(f*m.factor, 'g', 15, 64), 64) // so that 0.57 times 100 is 57
	return number(f)
}

// programMetrics reads metrics.json.
func programMetrics(out fs.FS) (members map[string]*strictjson.Value, problems []string) {
	members = map[string]*strictjson.Value{}
	info, err := fs.Stat(out, metricsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return members, nil
	}
	var text []byte
	if err == nil && info.Size() > maxMetricsFile {
		err = fmt.Errorf("%s has %d bytes, at most %d are read", metricsFile, info.Size(), maxMetricsFile)
	}
	if err == nil {
		text, err = readTail(out, metricsFile, maxMetricsFile)
	}
	if err != nil {
		return members, []string{err.Error()}
	}
	v, err := strictjson.Parse(text)
	var invalid *fault.Error
	switch {
	case errors.As(err, &invalid):
		return members, []string{fmt.Sprintf("%s is not valid JSON: %s", metricsFile, invalid.Message)}
	case err != nil:
		return members, []string{fmt.Sprintf("%s: %v", metricsFile, err)}
	case v.Kind != strictjson.Object:
		return members, []string{fmt.Sprintf("%s must hold an object, not %v", metricsFile, v.Kind)}
	}
	for _, m := range v.Members {
		members[m.Name] = m.Value
	}
	return members, nil
}

// figure converts matched text to a number if possible.
func figure(found []byte) *strictjson.Value {
	text := strings.TrimSpace(string(found))
	if v, err := strictjson.Parse([]byte(text)); err == nil && v.Kind == strictjson.Number {
		return v
	}
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return &strictjson.Value{Kind: strictjson.Number, Text: strconv.FormatFloat(f, 'g', -1, 64)}
	}
	return &strictjson.Value{Kind: strictjson.String, Text: plaintext.OneLine(found, maxFigureText)}
}
