package cgidp

import "fmt"

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
