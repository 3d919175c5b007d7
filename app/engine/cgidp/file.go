package cgidp

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// Names of result files. Those of one sequence are in a folder of its name.
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

	rgPlotFile       = "rg.svg"
	distancePlotFile = "distance_map.png"
)

// trajectoryName is the file of a replica, counted from 1.
func trajectoryName(replica int) string {
	if replica == 1 {
		return trajectoryFile
	}
	return fmt.Sprintf("traj_r%d.dcd", replica)
}

// writeFile replaces a file by an atomic rename.
func writeFile(path string, content []byte) error {
	temporary := temporaryName(path)
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func temporaryName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
}

// writeTemporary writes the future content of a file to a temporary one beside it,
// with fsync, and returns its path.
func writeTemporary(path string, content []byte) (temporary string, err error) {
	temporary = temporaryName(path)
	file, err := os.Create(temporary)
	if err != nil {
		return "", err
	}
	_, err = file.Write(content)
	return temporary, errors.Join(err, file.Sync(), file.Close())
}

// syncFolder makes renames durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(content, '\n'))
}

// number has at most four decimals in JSON, and is null if it is unknown.
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
