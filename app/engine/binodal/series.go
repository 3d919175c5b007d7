package binodal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/engine/input"
)

// Kind is the quantity that varies along a series.
type Kind string

// Kinds of series.
const (
	OverTemperature   Kind = "temperature"
	OverIonicStrength Kind = "ionic_strength"
)

// Series is a sorted series of points of one system.
type Series struct {
	Kind   Kind
	Points []Point
}

// NewSeries sorts points into a series. If points do not belong to the same series, it
// returns validation errors that name the jobs and the properties in which they differ.
func NewSeries(points []Point) (*Series, []fault.Field) {
	s := &Series{OverTemperature, slices.Clone(points)}
	slices.SortFunc(s.Points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Temperature, b.Temperature), cmp.Compare(a.IonicStrength, b.IonicStrength), strings.Compare(a.Job, b.Job))
	})
	var faults []fault.Field
	for _, each := range []struct {
		what string
		of   func(p *Point) string
	}{
		{"model", func(p *Point) string { return p.same.model + ", version " + p.same.version }},
		{"sequence", func(p *Point) string { return p.same.sequence }},
		{"pH", func(p *Point) string { return input.Plain(p.same.pH) }},
		{"charged_termini", func(p *Point) string { return fmt.Sprint(p.same.chargedTermini) }},
	} {
		if text, differ := s.differences(each.of); differ {
			faults = append(faults, input.Faultf(input.Loc(pointsKey), input.Conflict,
				"the jobs differ in %s: %s; make a binodal of jobs that differ in nothing but temperature or ionic strength", each.what, text))
		}
	}
	_, inTemperature := s.differences(temperatureOf)
	_, inSalt := s.differences(saltOf)
	if inTemperature && inSalt {
		text, _ := s.differences(func(p *Point) string { return temperatureOf(p) + " and " + saltOf(p) })
		faults = append(faults, input.Faultf(input.Loc(pointsKey), input.Conflict,
			"the jobs differ in temperature and in ionic strength: %s; give those of one temperature or of one ionic strength", text))
	}
	if inSalt {
		s.Kind = OverIonicStrength
	}
	return s, faults
}

func temperatureOf(p *Point) string { return input.Plain(p.Temperature) + " K" }
func saltOf(p *Point) string        { return input.Plain(p.IonicStrength) + " mol/L" }

// maxListed is the maximum number of jobs, or of values, listed in a message.
const maxListed = 4

// differences lists the jobs grouped by a property and reports whether they differ in it.
func (s *Series) differences(of func(p *Point) string) (text string, differ bool) {
	jobs := map[string][]string{}
	for i := range s.Points {
		value := of(&s.Points[i])
		jobs[value] = append(jobs[value], s.Points[i].Job)
	}
	var parts []string
	for _, value := range slices.Sorted(maps.Keys(jobs)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", abbreviate(value), joinFirst(jobs[value], ", ")))
	}
	return joinFirst(parts, "; "), len(parts) > 1
}

// joinFirst joins the first maxListed strings and appends the number of omitted ones.
func joinFirst(texts []string, between string) string {
	if more := len(texts) - maxListed; more > 0 {
		return strings.Join(texts[:maxListed], between) + between + fmt.Sprintf("%d more", more)
	}
	return strings.Join(texts, between)
}

// abbreviate shortens a long sequence to its two ends, because sequences can differ at
// either end.
func abbreviate(text string) string {
	const most, end = 40, 16
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s…%s of %d letters", text[:end], text[len(text)-end:], len(text))
}

// at returns the coordinate of a point in the series, in K or mol/L.
func (s *Series) at(p *Point) float64 {
	if s.Kind == OverIonicStrength {
		return p.IonicStrength
	}
	return p.Temperature
}
