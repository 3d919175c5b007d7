package algorithm

import (
	"molrun/app/placement"
	"molrun/app/tomltree"
)

// readPlacement reads where on a cluster the jobs go. Which options may be given is for
// the configuration to say, so an algorithm with others is not ready.
func readPlacement(r *tomltree.Reader, root *tomltree.Node) placement.Placement {
	t := r.Table(root, "slurm")
	if t == nil {
		return placement.Placement{}
	}
	r.Known(t, "[slurm]", []string{"partition", "account", "qos", "constraint", "options"})
	p := placement.Placement{
		Partition: r.Line(t, "partition"), Account: r.Line(t, "account"), QOS: r.Line(t, "qos"),
		Constraint: r.Line(t, "constraint"), Options: r.Texts(t, "options"),
	}
	if field, msg := p.Check(); field != "" {
		r.Mistakef(t.Member(field).Line, "%s: %s", field, msg)
	}
	return p
}
