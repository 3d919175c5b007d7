package binodal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/naming"
	"molrun/app/engine/input"
	"molrun/app/engine/store"
)

// Names of the result files.
const (
	metricsFile = "metrics.json"
	summaryFile = "summary.json"
	tableFile   = "binodal.csv"
	curveFile   = "curve.csv"
	plotFile    = "binodal.svg"
)

// maxSummary is the maximum number of bytes read from a summary file, many times the size
// of the summary of a large system.
const maxSummary = 8 << 20

// Run evaluates cg-condensate summaries, whose paths are in the order of s.Points, and
// writes the results into a folder. If points are incompatible, it returns an error that
// lists all issues. A series that does not determine a critical temperature is a valid
// result.
func Run(ctx context.Context, s *Settings, paths []string, folder string, log io.Writer) error {
	var points []Point
	var faults []fault.Field
	var digests []string
	for i, name := range jobNames(s.Points, paths) {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := readSummary(paths[i])
		if err != nil {
			return err
		}
		digests = append(digests, fmt.Sprintf("%x", sha256.Sum256(text)))
		p, wrong := ReadPoint(name, text, input.Loc(pointsKey, i))
		points, faults = append(points, p), append(faults, wrong...)
	}
	if len(points) == 0 {
		return errors.New("no points given")
	}
	series, apart := NewSeries(points)
	if len(faults) == 0 {
		faults = apart
	}
	if len(faults) > 0 {
		return wrongPoints(faults)
	}
	v := Evaluate(series, s.Unconverged)
	for _, line := range v.sentences() {
		fmt.Fprintln(log, line)
	}
	for _, w := range v.Warnings {
		store.Warn(log, w)
	}
	slices.Sort(digests) // the digest does not depend on the order of the points
	input := sha256.Sum256(fmt.Append(nil, engineName, engineVersion, s.Unconverged, digests))
	return v.writeFiles(s, store.Origin{Molrun: s.Molrun, Engine: engineName + " " + engineVersion, Digest: input[:]}, folder)
}

// wrongPoints returns one error that lists all faults on one line.
func wrongPoints(faults []fault.Field) error {
	texts := make([]string, len(faults))
	for k, f := range faults {
		texts[k] = f.Msg
	}
	return fmt.Errorf("invalid points: %s", strings.Join(texts, "; "))
}

func readSummary(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a point: %w", err)
	}
	defer file.Close() // read-only
	return io.ReadAll(io.LimitReader(file, maxSummary))
}

// jobNames returns a name for each result: the job of a reference, or the file name of an
// upload. A number is appended to duplicate names.
func jobNames(references, paths []string) []string {
	names, seen := make([]string, len(paths)), map[string]int{}
	for i, path := range paths {
		names[i] = filepath.Base(path)
		if len(references) == len(paths) {
			if r := naming.ParseReference(references[i]); r.OfJob {
				names[i] = r.Job
			}
		}
		seen[names[i]]++
		if n := seen[names[i]]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d)", names[i], n)
		}
	}
	return names
}

func (v *Result) writeFiles(s *Settings, origin store.Origin, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	picture, err := v.drawPlot()
	if err != nil {
		return fmt.Errorf("draw the binodal: %w", err)
	}
	if v.curve() != nil {
		err = store.WriteCSV(filepath.Join(folder, curveFile), v.curveTable())
	}
	return errors.Join(err,
		store.WriteCSV(filepath.Join(folder, tableFile), v.table()),
		store.WriteFile(filepath.Join(folder, plotFile), origin.SVG(picture)),
		store.WriteJSON(filepath.Join(folder, summaryFile), v.summary(s, origin)),
		store.WriteJSON(filepath.Join(folder, metricsFile), v.metrics()))
}
