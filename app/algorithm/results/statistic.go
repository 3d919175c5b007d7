package results

import (
	"fmt"
	"math"
	"strconv"

	"molrun/app/base/strictjson"
)

// statistic reduces many numbers to one, in a single pass.
type statistic struct {
	take        string
	n           int
	first, last float64
	least, most float64
	sum         float64
}

func (s *statistic) add(v float64) {
	if s.n == 0 {
		s.first, s.least, s.most = v, v, v
	}
	s.n++
	s.last, s.least, s.most, s.sum = v, min(s.least, v), max(s.most, v), s.sum+v
}

// times returns the statistic of the numbers multiplied by a positive factor.
func (s *statistic) times(factor float64) *statistic {
	return &statistic{s.take, s.n, s.first * factor, s.last * factor, s.least * factor, s.most * factor, s.sum * factor}
}

// value returns the result. Without any numbers only count has a value, which is 0.
func (s *statistic) value() (*strictjson.Value, error) {
	if s.take == "count" {
		return number(float64(s.n)), nil
	}
	if s.n == 0 {
		return nil, fmt.Errorf("there are no numbers to compute the %s of", s.take)
	}
	v := map[string]float64{
		"first": s.first, "last": s.last, "min": s.least, "max": s.most, "sum": s.sum, "mean": s.sum / float64(s.n),
	}[s.take]
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil, fmt.Errorf("the %s is not a number", s.take)
	}
	return number(v), nil
}

func number(v float64) *strictjson.Value {
	return &strictjson.Value{Kind: strictjson.Number, Text: strconv.FormatFloat(v, 'g', -1, 64)}
}
