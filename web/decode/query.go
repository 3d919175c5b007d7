package decode

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// parameter returns a query parameter that was sent once. checkUnknown reports repeated
// parameters.
func (r *Reader) parameter(name string) (value string, sent bool) {
	r.known = append(r.known, name)
	if len(r.query[name]) != 1 {
		return "", false
	}
	return r.query[name][0], true
}

// Text returns a non-empty query parameter. An empty filter would select everything by
// accident.
func (r *Reader) Text(name string) string {
	value, sent := r.parameter(name)
	if sent && !r.isText(name, value) {
		return ""
	}
	return value
}

// RequiredText is Text for a required parameter.
func (r *Reader) RequiredText(name string) string {
	if len(r.query[name]) == 0 {
		r.Fault("missing", []any{"query", name}, "this parameter is required")
	}
	return r.Text(name)
}

// isText reports whether a parameter's value is valid and not empty. If not, it adds an
// error.
func (r *Reader) isText(name, value string) bool {
	switch {
	case value == "":
		r.Fault("value", []any{"query", name}, "give a value, or omit the parameter")
	case !utf8.ValidString(value):
		r.Fault("value", []any{"query", name}, "percent-encode this as valid UTF-8")
	default:
		return true
	}
	return false
}

// maxRepeats is the maximum number of times that a parameter can be sent.
const maxRepeats = 20

// Texts returns the values of a parameter that can be repeated, each non-empty.
func (r *Reader) Texts(name string) []string {
	r.known, r.repeated = append(r.known, name), append(r.repeated, name)
	values := r.query[name]
	if len(values) > maxRepeats {
		r.Fault("value", []any{"query", name}, "send this parameter at most %d times", maxRepeats)
		return nil
	}
	for _, value := range values {
		if !r.isText(name, value) {
			return nil
		}
	}
	return values
}

// Choices returns the values of a parameter that can be repeated, each one of values.
func (r *Reader) Choices(name string, values ...string) []string {
	sent := r.Texts(name)
	for _, value := range sent {
		if !slices.Contains(values, value) {
			r.Fault("value", []any{"query", name}, "use %s", oneOf(values))
			return nil
		}
	}
	return sent
}

// Time returns a time such as 2026-11-20T10:40:00Z, or a day, which begins at midnight
// UTC. It is zero if the parameter is absent.
func (r *Reader) Time(name string) time.Time {
	value, sent := r.parameter(name)
	if !sent {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, value); err == nil && at.Year() >= firstYear {
			return at.UTC()
		}
	}
	r.Fault("value", []any{"query", name}, "use a time such as 2026-11-20T10:40:00Z, or a day such as 2026-11-20")
	return time.Time{}
}

// firstYear is the earliest year of a time. It keeps times within the range of every
// index.
const firstYear = 1970

// Digest returns a SHA-256 digest in lowercase hex.
func (r *Reader) Digest(name string) string {
	value, sent := r.parameter(name)
	if !sent {
		return ""
	}
	value = strings.ToLower(value)
	if raw, err := hex.DecodeString(value); err != nil || len(raw) != sha256.Size {
		r.Fault("value", []any{"query", name}, "use the 64 hexadecimal digits of a SHA-256 digest")
		return ""
	}
	return value
}

func oneOf(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// StartKey returns the cursor of a page; "" is the first page.
func (r *Reader) StartKey() string {
	value, _ := r.parameter("startKey")
	if !utf8.ValidString(value) {
		r.Fault("value", []any{"query", "startKey"}, "use the startKey of the previous page unchanged")
		return ""
	}
	return value
}

// Choice returns a parameter that is one of values, or "" if it is absent.
func (r *Reader) Choice(name string, values ...string) string {
	value, sent := r.parameter(name)
	if sent && !slices.Contains(values, value) {
		r.Fault("value", []any{"query", name}, "use %s", oneOf(values))
		return ""
	}
	return value
}

// ChoiceOr is Choice for a parameter that can also be a prefix followed by a name, such
// as metric:rg_nm.
func (r *Reader) ChoiceOr(prefix, name string, values ...string) string {
	value, sent := r.parameter(name)
	if !sent || slices.Contains(values, value) {
		return value
	}
	if rest, found := strings.CutPrefix(value, prefix); !found || rest == "" || !utf8.ValidString(rest) {
		r.Fault("value", []any{"query", name}, "use %s", oneOf(append(values, prefix+"<name>")))
		return ""
	}
	return value
}

// Flag returns a boolean parameter, or false if it is absent.
func (r *Reader) Flag(name string) bool {
	value, sent := r.parameter(name)
	switch strings.ToLower(value) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	if sent {
		r.Fault("type", []any{"query", name}, "use true, false, 1 or 0")
	}
	return false
}

// Integer returns an integer from min to max, or instead if the parameter is absent.
func (r *Reader) Integer(name string, min, max, instead int64) int64 {
	value, sent := r.parameter(name)
	if !sent {
		return instead
	}
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		r.Fault("type", []any{"query", name}, "use an integer")
	case err != nil || n < min || n > max:
		r.Fault("value", []any{"query", name}, "use a number from %d to %d", min, max)
	default:
		return n
	}
	return instead
}

// Duration returns a duration such as 30s or, in seconds, 30.
func (r *Reader) Duration(name string, max time.Duration) time.Duration {
	value, sent := r.parameter(name)
	if !sent {
		return 0
	}
	d, err := time.ParseDuration(value)
	if seconds, inSeconds := strconv.ParseUint(value, 10, 31); inSeconds == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	switch {
	case err != nil:
		r.Fault("type", []any{"query", name}, "use a time such as 30s")
	case d < 0 || d > max:
		r.Fault("value", []any{"query", name}, "use a time from 0s to %v", max)
	default:
		return d
	}
	return 0
}
