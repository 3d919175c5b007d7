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

// jobMetrics indexes rows that have metrics by batch and id; the value is the metrics of
// the result. Sorting by a metric, or listing metric names, reads at most the 10,000
// entries of a batch, which takes milliseconds.
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
	metricNumber = 'n' // followed by the 8 bytes of a float64
	metricOther  = 'o' // a string or boolean, by which rows cannot be sorted
)

// appendMetrics appends each metric shown in tables: length of its name, name, kind,
// number.
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
	name   []byte // only valid during the transaction
	number float64
	kind   byte
}

// cutMetric decodes the metric at the start of a value and returns the rest.
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

// metricNames returns the sorted names of the metrics of a batch's rows, up to a maximum
// number.
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

// byMetric sorts candidates, rows of a batch in ID order, by a metric. Rows without it
// come last. The key suffixes that it yields consist of the rank of the metric and the
// ID; suffixes up to a position are skipped.
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
		r := ranked{lastRank, id}
		if bytes.HasPrefix(w.Key, batch[:]) && bytes.Equal(w.Key[len(batch):], id[:]) {
			if r.place, err = rankOf(f, w.Value); err != nil {
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

// ranked is a row with its rank, a number that sorts like the metric.
type ranked struct {
	place uint64
	id    sortid.ID
}

func (r ranked) compare(other ranked) int {
	return cmp.Or(cmp.Compare(r.place, other.place), bytes.Compare(r.id[:], other.id[:]))
}

func (r ranked) end() kv.Key { return kv.Key(binary.BigEndian.AppendUint64(nil, r.place)).ID(r.id) }

// lastRank is greater than the ranks of all numbers.
const lastRank = math.MaxUint64

// rankOf returns the rank of a row with these metrics in the order of a filter.
func rankOf(f app.JobFilter, value []byte) (uint64, error) {
	for len(value) > 0 {
		m, rest, err := cutMetric(value)
		if err != nil {
			return 0, err
		}
		if value = rest; string(m.name) == f.Metric && m.kind == metricNumber {
			return placeOfNumber(m.number, f.Ascending), nil
		}
	}
	return lastRank, nil
}

func placeOfNumber(number float64, ascending bool) uint64 {
	place := math.Float64bits(number)
	if number < 0 {
		place = ^place
	} else { // 0 and -0 get the same rank
		place |= 1 << 63
	}
	if !ascending {
		return ^place
	}
	return place
}
