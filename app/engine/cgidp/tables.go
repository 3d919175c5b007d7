package cgidp

import (
	"path/filepath"
	"strconv"
	"strings"

	"molrun/app/engine/input"
	"molrun/app/engine/store"
)

// metrics is the format of metrics.json, which is used to compare jobs.
type metrics struct {
	Rg             store.Number `json:"rg_nm"`
	RgSE           store.Number `json:"rg_se_nm"`
	Ree            store.Number `json:"ree_nm"`
	ReeSE          store.Number `json:"ree_se_nm"`
	Nu             store.Number `json:"nu"`
	NuSE           store.Number `json:"nu_se"`
	Converged      bool         `json:"converged"`
	StepsPerSecond store.Number `json:"steps_per_second"`
}

func (s *summary) metrics() metrics {
	r := s.Results
	return metrics{r.Rg.Mean, r.Rg.SE, r.Ree.Mean, r.Ree.SE, r.Nu, r.NuSE, r.Converged, s.Performance.StepsPerSecond}
}

// writeTables writes metrics.json and, for several sequences, results.csv.
func writeTables(dir string, all []*summary) error {
	path := filepath.Join(dir, metricsFile)
	if len(all) == 1 {
		return store.WriteJSON(path, all[0].metrics())
	}
	bySequence := make(map[string]metrics, len(all))
	for _, s := range all {
		bySequence[s.Name] = s.metrics()
	}
	if err := store.WriteJSON(path, map[string]any{"sequences": bySequence}); err != nil {
		return err
	}
	return store.WriteCSV(filepath.Join(dir, resultsFile), resultsTable(all))
}

func resultsTable(all []*summary) [][]string {
	rows := [][]string{{
		"name", "n_residues", "temperature_K", "pH", "ionic_strength_M", "steps", "replicas",
		"rg_nm", "rg_se_nm", "ree_nm", "ree_se_nm", "nu", "nu_se", "converged", "warnings",
	}}
	for _, s := range all {
		r, c := s.Results, s.Settings
		rows = append(rows, []string{
			s.Name, strconv.Itoa(s.Residues), input.Plain(c.Temperature), input.Plain(c.PH), input.Plain(c.IonicStrength),
			strconv.FormatInt(c.Steps, 10), strconv.Itoa(c.Replicas),
			store.Decimals(float64(r.Rg.Mean)), store.Decimals(float64(r.Rg.SE)),
			store.Decimals(float64(r.Ree.Mean)), store.Decimals(float64(r.Ree.SE)),
			store.Decimals(float64(r.Nu)), store.Decimals(float64(r.NuSE)), strconv.FormatBool(r.Converged), strings.Join(s.Warnings, "; "),
		})
	}
	return rows
}
