package storage

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"strconv"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/base/strictjson"
	"molrun/storage/kv"
)

const indexJobsMetrics = "jobs.metrics"

// jobMetrics: batch, id; the value is the metrics of the result. Only rows that have
// some. An order by one of them, or the list of their names, reads at most the
// 10,000 entries of a batch, which takes milliseconds.
func jobMetrics(id sortid.ID, j *app.Job) []kv.Entry {
	if j.Private.Batch == "" || j.Metrics == nil {
		return nil
	}
	value := appendMetrics(nil, j.Metrics.Results)
	if len(value) == 0 {
		return nil
	}
	return []kv.Entry{{Key: kv.Key{}.ID(idOf(j.Private.Batch)).ID(id), Value: value}}
}

// Kinds of metrics in values of jobs.metrics.
const (
	metricNumber = 'n' // 8 bytes follow
	metricOther  = 'o' // a text or truth value, which has no place in an order
)

// appendMetrics appends each metric that a table shows: length of its name, name,
// kind, number.
func appendMetrics(b []byte, results json.RawMessage) []byte {
	for _, m := range strictjson.Shown(results) {
		b = append(b, byte(len(m.Name)))
		b = append(b, m.Name...)
		if f, err := strconv.ParseFloat(m.Value.Text, 64); m.Value.Kind == strictjson.Number && err == nil {
			b = binary.BigEndian.AppendUint64(append(b, metricNumber), math.Float64bits(f))
		} else {
			b = append(b, metricOther)
		}
	}
	return b
}

// metric is one metric in a value of jobs.metrics.
type metric struct {
	name   []byte // of the transaction
	number float64
	kind   byte
}

// cutMetric reads the metric at the beginning of a value and returns the rest.
func cutMetric(value []byte) (m metric, rest []byte, err error) {
	n := int(value[0]) + 1
	if len(value) <= n {
		return m, nil, kv.ErrKey
	}
	m.name, m.kind, rest = value[1:n], value[n], value[n+1:]
	switch {
	case m.kind == metricOther:
		return m, rest, nil
	case m.kind != metricNumber || len(rest) < 8:
		return m, nil, kv.ErrKey
	}
	m.number = math.Float64frombits(binary.BigEndian.Uint64(rest))
	return m, rest[8:], nil
}

// metricNames returns the names of the metrics that the rows of a batch have, sorted,
// up to most of them.
func metricNames(t *kv.Tx, batch sortid.ID, most int) (names []string, err error) {
	seen := map[string]bool{}
	for _, value := range t.Ascend(indexJobsMetrics, batch[:]) {
		for len(value) > 0 {
			var m metric
			if m, value, err = cutMetric(value); err != nil {
				return nil, fmt.Errorf("%s: %w", indexJobsMetrics, err)
			}
			if !seen[string(m.name)] && len(names) < most {
				seen[string(m.name)] = true
				names = append(names, string(m.name))
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// byMetric puts candidates, rows of a batch in the order of their IDs, into the
// order of a metric. Rows without it come last. The ends of the keys that it yields
// consist of the place of the metric and the ID; those up to a position are left
// out.
func byMetric(t *kv.Tx, f app.JobFilter, rows iter.Seq[kv.Key], after app.Position) (iter.Seq[kv.Key], error) {
	var all []ranked
	w, batch := t.Walk(indexJobsMetrics), idOf(f.Batch)
	w.Seek(batch[:])
	for row := range rows {
		id, err := row.LastID()
		if err != nil {
			return nil, err
		}
		for bytes.HasPrefix(w.Key, batch[:]) && bytes.Compare(w.Key[len(batch):], id[:]) < 0 {
			w.Next()
		}
		r := ranked{placeLast, id}
		if bytes.HasPrefix(w.Key, batch[:]) && bytes.Equal(w.Key[len(batch):], id[:]) {
			if r.place, err = placeOf(f, w.Value); err != nil {
				return nil, fmt.Errorf("%s: %w", indexJobsMetrics, err)
			}
		}
		all = append(all, r)
	}
	slices.SortFunc(all, ranked.compare)
	return func(yield func(kv.Key) bool) {
		from := sort.Search(len(all), func(i int) bool { return string(all[i].end()) > string(after) })
		for _, r := range all[from:] {
			if !yield(r.end()) {
				return
			}
		}
	}, nil
}

// ranked is a row with its place in an order, of which there is one for each number.
type ranked struct {
	place uint64
	id    sortid.ID
}

func (r ranked) compare(other ranked) int {
	return cmp.Or(cmp.Compare(r.place, other.place), bytes.Compare(r.id[:], other.id[:]))
}

func (r ranked) end() kv.Key { return kv.Key(binary.BigEndian.AppendUint64(nil, r.place)).ID(r.id) }

// placeLast is behind the places of all numbers.
const placeLast = math.MaxUint64

// placeOf returns where a row with these metrics belongs in the order of a filter.
func placeOf(f app.JobFilter, value []byte) (uint64, error) {
	for len(value) > 0 {
		m, rest, err := cutMetric(value)
		if err != nil {
			return 0, err
		}
		if value = rest; string(m.name) == f.Metric && m.kind == metricNumber {
			return placeOfNumber(m.number, f.Ascending), nil
		}
	}
	return placeLast, nil
}

func placeOfNumber(number float64, ascending bool) uint64 {
	place := math.Float64bits(number)
	if number < 0 {
		place = ^place
	} else { // 0 and -0 get one place
		place |= 1 << 63
	}
	if !ascending {
		return ^place
	}
	return place
}
