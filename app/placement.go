package app

// Placement says where on a cluster a task goes, besides what its resources
// say. What is empty is left to the cluster.
type Placement struct {
	Partition  string
	Account    string
	QOS        string
	Constraint string
	Options    []string // further ones of the cluster's own command, each a word such as --exclusive or --nice=100
}
