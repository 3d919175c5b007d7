package remote

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"molrun/app/client"
)

// maxMetric is the maximum length of a string that counts as a metric.
const maxMetric = 60

// plainMetrics returns the metrics that fit on one line, formatted as their descriptions
// in metrics specify. Described metrics come first.
func plainMetrics(all map[string]any, metrics []client.TableColumn) (figures [][2]string) {
	known := make([]string, len(metrics))
	for i, m := range metrics {
		known[i] = m.Name
	}
	place := func(name string) int {
		if i := slices.Index(known, name); i >= 0 {
			return i
		}
		return len(known)
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(place(a)-place(b), strings.Compare(a, b)) })
	for _, name := range names {
		m := client.TableColumn{Name: name}
		if i := place(name); i < len(metrics) {
			m = metrics[i]
		}
		if m.ErrorOf != "" && isNumber(all[m.ErrorOf]) && positive(all[name]) {
			continue // a standard error, shown next to its value
		}
		if text := metricText(all, m, metrics); text != "" {
			figures = append(figures, [2]string{cmp.Or(m.Title, name), text})
		}
	}
	return figures
}

// metricText returns a value with its error, unit and interpretation, or "" if it does not
// fit on one line.
func metricText(all map[string]any, m client.TableColumn, metrics []client.TableColumn) string {
	switch v := all[m.Name].(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		text := measured(f, errorOf(all, m.Name, metrics), m.Digits)
		if m.Unit != "" {
			text += " " + m.Unit
		}
		if words := readingOf(f, m.Reading); words != "" {
			text += ": " + words
		}
		return text
	case string:
		if len(v) <= maxMetric {
			return v
		}
	case bool:
		return fmt.Sprint(v)
	}
	return ""
}

// errorOf returns the standard error of a metric, or 0 if it is unknown.
func errorOf(all map[string]any, name string, metrics []client.TableColumn) float64 {
	i := slices.IndexFunc(metrics, func(m client.TableColumn) bool { return m.ErrorOf == name })
	if i < 0 || !positive(all[metrics[i].Name]) {
		return 0
	}
	return asFloat(all[metrics[i].Name])
}

func asFloat(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return math.NaN()
}

func isNumber(v any) bool { return !math.IsNaN(asFloat(v)) }

func positive(v any) bool { return asFloat(v) > 0 }

// readingOf returns the interpretation of v: the words of the last reading whose
// threshold v reaches.
func readingOf(v float64, readings []client.Reading) (words string) {
	for _, r := range readings {
		if r.From == nil || v >= *r.From {
			words = r.Words
		}
	}
	return words
}

// measured formats a value with as many digits as its error justifies. Without an error
// (0), it uses the given number of decimals, or all significant digits.
func measured(v, err float64, digits *int) string {
	switch size := math.Abs(v); {
	case err > 0:
		return within(v, err)
	case digits != nil:
		return fixed(v, *digits)
	case v == math.Trunc(v) && size < 1e15:
		return fixed(v, 0)
	case size >= 1e6 || size < 1e-3:
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 3, 64), "e")
		return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
	default:
		short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 4, 64), 64)
		return grouped(strconv.FormatFloat(short, 'f', -1, 64))
	}
}

// within formats a value with its error. The error gets two significant digits if its
// first three digits are between 100 and 354, otherwise one.
func within(v, err float64) string {
	if e := int(math.Floor(math.Log10(max(math.Abs(v), err)))); e < -3 || e >= 6 {
		scale := math.Pow10(e)
		return "(" + within(v/scale, err/scale) + ")×10" + superscript.Replace(strconv.Itoa(e))
	}
	size := int(math.Floor(math.Log10(err)))
	digits := -size
	if math.Round(err*math.Pow10(2-size)) < 355 {
		digits++
	}
	if digits < 0 {
		step := math.Pow10(-digits)
		v, err, digits = math.Round(v/step)*step, math.Round(err/step)*step, 0
	}
	return fixed(v, digits) + " ± " + fixed(err, digits)
}

var superscript = strings.NewReplacer("-", "⁻", "0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹")

// fixed formats a number with the given number of decimals, without the sign of a
// negative zero.
func fixed(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Trim(text, "-0.") == "" {
		text = strings.TrimPrefix(text, "-")
	}
	return grouped(text)
}

// grouped inserts thousands separators into numbers of five or more digits.
func grouped(text string) string {
	whole, fraction, has := strings.Cut(text, ".")
	sign := ""
	if whole[0] == '-' {
		sign, whole = "-", whole[1:]
	}
	if len(whole) > 4 {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
	}
	if has {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}
