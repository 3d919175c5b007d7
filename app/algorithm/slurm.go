package algorithm

import "molrun/app/placement"

// slurm reads where on a cluster the jobs go. Which options may be given is for
// the configuration to say, so an algorithm with others is not ready.
func (r *reader) slurm(root *tomlNode) placement.Placement {
	t := r.table(root, "slurm")
	if t == nil {
		return placement.Placement{}
	}
	r.known(t, "[slurm]", []string{"partition", "account", "qos", "constraint", "options"})
	p := placement.Placement{
		Partition: r.line(t, "partition"), Account: r.line(t, "account"), QOS: r.line(t, "qos"),
		Constraint: r.line(t, "constraint"), Options: r.texts(t, "options"),
	}
	if field, msg := p.Check(); field != "" {
		r.mistake(t.member(field).line, "%s: %s", field, msg)
	}
	return p
}
