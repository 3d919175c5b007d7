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

// Names of result files.
const (
	metricsFile = "metrics.json"
	summaryFile = "summary.json"
	tableFile   = "binodal.csv"
	curveFile   = "curve.csv"
	plotFile    = "binodal.svg"
)

// maxSummary is the largest summary that is read, in bytes: many times those of large systems.
const maxSummary = 8 << 20

// Run evaluates summaries of cg-condensate, whose paths are in the order of the settings' points,
// and writes the results into a folder. Points that do not go together are an error with all
// that is wrong. A series that does not determine a critical temperature is a result.
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
		return errors.New("the points are wrong: there are none")
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
	slices.Sort(digests) // the order of the points makes no difference
	input := sha256.Sum256(fmt.Append(nil, engineName, engineVersion, s.Unconverged, digests))
	return v.writeFiles(s, store.Origin{Molrun: s.Molrun, Engine: engineName + " " + engineVersion, Digest: input[:]}, folder)
}

// wrongPoints is one line with all faults.
func wrongPoints(faults []fault.Field) error {
	texts := make([]string, len(faults))
	for k, f := range faults {
		texts[k] = f.Msg
	}
	return fmt.Errorf("the points are wrong: %s", strings.Join(texts, "; "))
}

func readSummary(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a point: %w", err)
	}
	defer file.Close() // only read from
	return io.ReadAll(io.LimitReader(file, maxSummary))
}

// jobNames names what the paths are results of: the jobs of the references, and for uploads
// the names of the files. Equal names get a number.
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

func (v *Verdict) writeFiles(s *Settings, origin store.Origin, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	picture, err := v.picture()
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
