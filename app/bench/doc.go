// Package bench measures the service next to what the machine allows. It drives
// a real server, in a process of its own, over HTTP, and in the same rounds
// measures the limits that the server can't pass (a bare group commit of bbolt,
// bare starts of processes) and a peer (nginx): absolute numbers tell of the
// hour and the neighbours, ratios within a round tell of the program.
//
// Seed fills a data directory with finished jobs, as a lab would in years.
// Table runs all measurements in rounds and prints each goal with the median of
// its rounds; Growth measures what depends on how many jobs there are.
//
// Nothing here is part of the service: the hidden commands molrun bench run it.
package bench
