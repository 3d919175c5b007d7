package cgidp

// Names of result files, beside those of package run. Those of one sequence are in a folder of its name.
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
