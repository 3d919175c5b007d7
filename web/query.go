package web

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"molrun/app"
)

func (in *input) parseQuery() {
	if most := in.limits().url; len(in.c.Request.RequestURI) > most {
		in.fault("value", []any{"query"}, "shorten the address to at most %d bytes", most)
		return
	}
	values, err := url.ParseQuery(in.c.Request.URL.RawQuery)
	if err != nil {
		in.fault("value", []any{"query"}, "percent-encode the query string: %v", err)
	}
	in.query = values
}

// checkParameter finds what is wrong with a parameter whatever it means.
func (in *input) checkParameter(name string) {
	loc := []any{"query", strings.ToValidUTF8(name, "�")}
	switch known := slices.Contains(in.known, name); {
	case !known:
		in.fault("unknown", loc, "there is no query parameter %q here; %s", cut(name), suggest(name, in.known))
	case len(in.query[name]) > 1:
		in.fault("value", loc, "send this parameter once")
	}
}

// value gives a parameter that was sent once; one sent more often is a fault
// of its own.
func (in *input) value(name string) (string, bool) {
	in.known = append(in.known, name)
	if len(in.query[name]) != 1 {
		return "", false
	}
	return in.query[name][0], true
}

// text gives a parameter that is any text but the empty one, which would
// otherwise select everything by accident.
func (in *input) text(name string) string {
	value, sent := in.value(name)
	switch {
	case sent && value == "":
		in.fault("value", []any{"query", name}, "give a value, or leave the parameter out")
	case !utf8.ValidString(value):
		in.fault("value", []any{"query", name}, "percent-encode this as valid UTF-8")
		return ""
	}
	return value
}

// startKey gives the cursor of a page; an empty one is that of the first.
func (in *input) startKey() string {
	value, _ := in.value("startKey")
	if !utf8.ValidString(value) {
		in.fault("value", []any{"query", "startKey"}, "use the startKey of the previous page as it was sent")
		return ""
	}
	return value
}

// flag gives a boolean parameter, false where it was not sent.
func (in *input) flag(name string) bool {
	value, sent := in.value(name)
	switch strings.ToLower(value) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	if sent {
		in.fault("type", []any{"query", name}, "use true, false, 1 or 0")
	}
	return false
}

// integer gives a whole number from min to max, or instead where it was not
// sent.
func (in *input) integer(name string, min, max, instead int64) int64 {
	value, sent := in.value(name)
	if !sent {
		return instead
	}
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		in.fault("type", []any{"query", name}, "use a whole number")
	case err != nil || n < min || n > max:
		in.fault("value", []any{"query", name}, "use a number from %d to %d", min, max)
	default:
		return n
	}
	return instead
}

// duration gives a time such as 30s or, in seconds, 30.
func (in *input) duration(name string, max time.Duration) time.Duration {
	value, sent := in.value(name)
	if !sent {
		return 0
	}
	d, err := time.ParseDuration(value)
	if seconds, inSeconds := strconv.ParseUint(value, 10, 31); inSeconds == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	switch {
	case err != nil:
		in.fault("type", []any{"query", name}, "use a time such as 30s")
	case d < 0 || d > max:
		in.fault("value", []any{"query", name}, "use a time from 0s to %v", max)
	default:
		return d
	}
	return 0
}

// status gives a state of a job, "" where none was sent.
func (in *input) status(name string) app.Status {
	value, sent := in.value(name)
	s := app.Status(value)
	if sent && !s.Valid() {
		in.fault("value", []any{"query", name}, "use QUEUED, RUNNING, COMPLETED or FAILED")
		return ""
	}
	return s
}
