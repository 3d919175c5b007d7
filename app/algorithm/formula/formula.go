// Package formula computes the size of a job from its settings: arithmetic with
// numbers, settings and files.
package formula

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"molrun/app/base/strictjson"
)

// Formula is an expression that has been read.
type Formula struct {
	Text  string
	Uses  []Use
	value term
}

// Use is a parameter that a formula reads.
type Use struct {
	Kind string // settings or files
	Name string
	As   string // "": its value; else the function: length or count
}

// term computes a part of a formula.
type term func(*Job) float64

// Job is what a formula reads: normalized settings, and the bytes of each file.
type Job struct {
	Settings *strictjson.Value
	Files    map[string]int64
}

// Value returns the size of a job, 0 if it has none: the formula divides by zero, or
// is negative or huge.
func (f *Formula) Value(j *Job) float64 {
	v := f.value(j)
	if math.IsNaN(v) || v < 0 || v > 1e300 {
		return 0
	}
	return v
}

// functions are those of several arguments.
var functions = map[string]func(all []float64) float64{
	"max": slices.Max[[]float64],
	"min": slices.Min[[]float64],
	"or":  firstOf,
}

// firstOf returns the first value that is not 0.
func firstOf(all []float64) float64 {
	for _, v := range all {
		if v != 0 {
			return v
		}
	}
	return 0
}

// value returns the term of a setting's or file's value.
func (u Use) value() term {
	if u.Kind == "files" {
		return func(j *Job) float64 { return float64(j.Files[u.Name]) }
	}
	measure := number
	switch u.As {
	case "length":
		measure = length
	case "count":
		measure = count
	}
	return func(j *Job) float64 {
		if v := j.Settings.Member(u.Name); v != nil {
			return measure(v)
		}
		return 0
	}
}

// number returns a number, 1 for true, and 0 for everything else.
func number(v *strictjson.Value) float64 {
	if v.Kind == strictjson.Bool && v.Text == "true" {
		return 1
	}
	n, err := strconv.ParseFloat(v.Text, 64)
	if v.Kind != strictjson.Number || err != nil {
		return 0
	}
	return n
}

// length returns the letters of a text, or of all texts of a list.
func length(v *strictjson.Value) float64 {
	if v.Kind == strictjson.String {
		return float64(utf8.RuneCountInString(v.Text))
	}
	sum := 0.0
	for _, item := range v.Items {
		sum += length(item)
	}
	return sum
}

// count returns how many items a list has; anything else is one, but null none.
func count(v *strictjson.Value) float64 {
	switch v.Kind {
	case strictjson.Array:
		return float64(len(v.Items))
	case strictjson.Null:
		return 0
	}
	return 1
}
