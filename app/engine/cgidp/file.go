package cgidp

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// Names of result files. Those of one sequence lie in a folder of its name.
const (
	metricsFile    = "metrics.json"
	resultsFile    = "results.csv"
	summaryFile    = "summary.json"
	seriesFile     = "timeseries.csv"
	topologyFile   = "top.pdb"
	ensembleFile   = "ensemble.pdb"
	distanceFile   = "distance_map.csv"
	contactFile    = "contact_map.csv"
	scalingFile    = "scaling.csv"
	trajectoryFile = "traj.dcd"
)

// trajectoryName is the file of a replica, which count from 1.
func trajectoryName(replica int) string {
	if replica == 1 {
		return trajectoryFile
	}
	return fmt.Sprintf("traj_r%d.dcd", replica)
}

// writeFile replaces a file whole or not at all.
func writeFile(path string, content []byte) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(content, '\n'))
}

// number is written with at most four decimals; null if it is not known.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return json.Marshal(n.rounded()) }

func (n number) rounded() *float64 {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v = math.Round(v*1e4) / 1e4
	return &v
}
