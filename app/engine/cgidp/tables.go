package cgidp

import (
	"bytes"
	"encoding/csv"
	"path/filepath"
	"strconv"
	"strings"
)

// metrics are the numbers in which jobs are compared, as in metrics.json.
type metrics struct {
	Rg             number `json:"rg_nm"`
	RgSE           number `json:"rg_se_nm"`
	Ree            number `json:"ree_nm"`
	ReeSE          number `json:"ree_se_nm"`
	Nu             number `json:"nu"`
	Converged      bool   `json:"converged"`
	StepsPerSecond number `json:"steps_per_second"`
}

func (s *summary) metrics() metrics {
	r := s.Results
	return metrics{r.Rg.Mean, r.Rg.SE, r.Ree.Mean, r.Ree.SE, r.Nu, r.Converged, s.Performance.StepsPerSecond}
}

// writeTables writes metrics.json and, for several sequences, results.csv.
func writeTables(dir string, all []*summary) error {
	path := filepath.Join(dir, metricsFile)
	if len(all) == 1 {
		return writeJSON(path, all[0].metrics())
	}
	bySequence := make(map[string]metrics, len(all))
	for _, s := range all {
		bySequence[s.Name] = s.metrics()
	}
	if err := writeJSON(path, map[string]any{"sequences": bySequence}); err != nil {
		return err
	}
	content, err := resultsTable(all)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, resultsFile), content)
}

func resultsTable(all []*summary) ([]byte, error) {
	rows := [][]string{{
		"name", "n_residues", "temperature_K", "pH", "ionic_strength_M", "steps", "replicas",
		"rg_nm", "rg_se_nm", "ree_nm", "ree_se_nm", "nu", "converged", "warnings",
	}}
	for _, s := range all {
		r, c := s.Results, s.Settings
		rows = append(rows, []string{
			s.Name, strconv.Itoa(s.Residues), plain(c.Temperature), plain(c.PH), plain(c.IonicStrength),
			strconv.FormatInt(c.Steps, 10), strconv.Itoa(c.Replicas),
			decimals(float64(r.Rg.Mean)), decimals(float64(r.Rg.SE)),
			decimals(float64(r.Ree.Mean)), decimals(float64(r.Ree.SE)),
			decimals(float64(r.Nu)), strconv.FormatBool(r.Converged), strings.Join(s.Warnings, "; "),
		})
	}
	var b bytes.Buffer
	err := csv.NewWriter(&b).WriteAll(rows)
	return b.Bytes(), err
}
