// Package plot draws the results of a simulation: the radius of gyration over the
// run, and the map of mean distances.
package plot
