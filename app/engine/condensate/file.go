package condensate

import "fmt"

// Names of result files.
const (
	metricsFile    = "metrics.json"
	summaryFile    = "summary.json"
	componentsFile = "components.csv"
	seriesFile     = "timeseries.csv"
	centresFile    = "centres.csv"
	profileFile    = "profile.csv"
	historyFile    = "profile_time.csv"
	profilePlot    = "profile.svg"
	topologyFile   = "top.pdb"
	ensembleFile   = "ensemble.pdb"
	trajectoryFile = "traj.dcd"
)

// trajectoryName is the file of a replica, counted from 1.
func trajectoryName(replica int) string {
	if replica == 1 {
		return trajectoryFile
	}
	return fmt.Sprintf("traj_r%d.dcd", replica)
}

// contactName is the file of the contacts of two components, without its extension.
func contactName(a, b Component) string { return "contacts_" + a.Name + "_" + b.Name }
