package cgidp

// Names of result files, in addition to those of package run. The files of one sequence
// are in a folder named after it.
const (
	metricsFile  = "metrics.json"
	resultsFile  = "results.csv"
	summaryFile  = "summary.json"
	distanceFile = "distance_map.csv"
	contactFile  = "contact_map.csv"
	scalingFile  = "scaling.csv"

	rgPlotFile       = "rg.svg"
	distancePlotFile = "distance_map.png"
)
