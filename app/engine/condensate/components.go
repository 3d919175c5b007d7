package condensate

import (
	"encoding/json"
	"fmt"
	"math"

	"molrun/app/engine/input"
)

// componentKeys are the keys of a component.
var componentKeys = []string{"sequence", "copies", "name"}

// components reads the components from the settings or the FASTA file.
func (r *reader) components(fasta []byte) []Component {
	switch inline, file := r.Has("components") && string(r.Raw("components")) != "[]", r.Has("fasta"); {
	case inline && file:
		r.Fault(input.Loc("fasta"), input.Conflict, "give either components or fasta, not both")
	case inline:
		return r.inlineComponents()
	case file:
		return r.fileComponents(fasta)
	default:
		r.Fault(input.Loc("components"), input.Missing, `give components: a list such as [{"sequence": "…", "copies": 100}], or a FASTA file as fasta with copies, the number of chains`)
	}
	return nil
}

func (r *reader) inlineComponents() []Component {
	const key = "components"
	var items []json.RawMessage
	if json.Unmarshal(r.Raw(key), &items) != nil {
		r.Fault(input.Loc(key), input.Type, `components must be a list such as [{"sequence": "…", "copies": 100}], not %s`, input.KindOf(r.Raw(key)))
		return nil
	}
	if r.CheckCount(key, len(items), []input.Source{{}}) == nil || len(items) == 0 {
		return nil
	}
	var all []Component
	for i, item := range items {
		all = append(all, r.component(item, i))
	}
	return all
}

// component reads one component. Its validation errors are located below its index.
func (r *reader) component(item json.RawMessage, index int) Component {
	at := func(path ...any) []any { return append(input.Loc("components", index), path...) }
	values, wrong := input.NewReader(item, componentKeys)
	if wrong != nil {
		r.Fault(at(), input.Type, `component %d must be an object such as {"sequence": "…", "copies": 100}, not %s`, index+1, input.KindOf(item))
		return Component{}
	}
	c := Component{Name: fmt.Sprintf("seq%d", index+1)}
	if values.Has("copies") {
		c.Copies = int(values.Integer(limitCopies))
	} else {
		r.Fault(at("copies"), input.Missing, "give copies: how many chains of component %d there are", index+1)
	}
	for _, f := range values.Faults {
		f.Loc = at(f.Loc...)
		r.Faults = append(r.Faults, f)
	}
	text, isText := values.Text("sequence")
	records := input.ParseFASTA([]byte(text))
	switch {
	case !values.Has("sequence"):
		r.Fault(at("sequence"), input.Missing, "give the sequence of component %d: amino acids in one-letter code", index+1)
	case !isText:
		r.Fault(at("sequence"), input.Type, "sequence must be text, not %s", input.KindOf(values.Raw("sequence")))
	case len(records) > 1:
		r.Fault(at("sequence"), input.Sequence, "component %d holds %d sequences; make each a component of its own", index+1, len(records))
	default:
		record := append(records, input.Record{})[0]
		if record.Name != "" {
			c.Name = record.Name
		}
		c.Residues = record.Letters
	}
	if values.Has("name") {
		name, ok := values.Text("name")
		if !ok {
			r.Fault(at("name"), input.Type, "name must be text, not %s", input.KindOf(values.Raw("name")))
		}
		c.Name = name
	}
	r.CheckName(c.Name, at("name"), index)
	if len(records) == 1 || values.Has("sequence") && isText && len(records) == 0 {
		r.CheckSequence(c.Name, c.Residues, at("sequence"))
	}
	return c
}

// fileComponents returns the records of the FASTA file as components, with their numbers
// of copies from the setting "copies".
func (r *reader) fileComponents(fasta []byte) []Component {
	sources := r.File(fasta)
	copies := r.copies(len(sources))
	var all []Component
	for k, s := range sources {
		c := Component{Name: s.Name, Residues: s.Letters, Copies: copies[k]}
		if c.Name == "" {
			c.Name = fmt.Sprintf("seq%d", s.Index+1)
		}
		r.CheckName(c.Name, s.Loc, s.Index)
		r.CheckSequence(c.Name, s.Letters, s.Loc)
		all = append(all, c)
	}
	return all
}

// copies reads the number of chains of each sequence: one number for all, or a list.
func (r *reader) copies(sequences int) []int {
	key := limitCopies.Key
	all := make([]int, sequences)
	var list []float64
	if !r.Has(key) || json.Unmarshal(r.Raw(key), &list) != nil {
		n := int(r.Integer(limitCopies))
		for k := range all {
			all[k] = n
		}
		return all
	}
	if sequences > 0 && len(list) != sequences {
		r.Fault(input.Loc(key), input.Range, "copies has %d numbers, and the FASTA file %d sequences; give one for each", len(list), sequences)
	}
	for k, n := range list {
		switch {
		case n != math.Trunc(n) || n < limitCopies.Low || n > limitCopies.High:
			r.Fault(input.Loc(key, k), input.Range, "item %d of copies is %s; choose a whole number between 1 and %d", k+1, input.Plain(n), maxChains)
		case k < sequences:
			all[k] = int(n)
		}
	}
	return all
}
