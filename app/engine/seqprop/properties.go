package seqprop

import (
	"fmt"
	"math"
	"strings"

	"molrun/app/engine/input"
	"molrun/app/engine/md"
)

// Properties are the properties of one sequence. Undefined ones are NaN.
type Properties struct {
	Name   string
	Length int // residues

	Mass                float64 // average mass of the whole molecule, in Da
	Charge              float64 // at the given pH, in e
	IsoelectricPoint    float64 // pH
	Extinction          float64 // at 280 nm, with free cysteines, in 1/(M cm)
	ExtinctionDisulfide float64 // with all pairs of cysteines as disulfides
	Hydropathy          float64 // mean Kyte–Doolittle hydropathy (GRAVY), -4.5 to 4.5
	Aromatic            float64 // fraction of F, W and Y
	Charged             float64 // fraction of D, E, K and R (FCR)
	NetCharge           float64 // net charge per residue (NCPR)
	Kappa               float64 // 0 to 1
	ChargeDecoration    float64 // SCD
	Disorder            float64 // distance from the boundary of the charge-hydropathy plot

	Note string // properties that could not be computed, and why
}

// PropertiesOf computes the properties of a sequence of upper-case letters.
func PropertiesOf(name, sequence string, pH float64) Properties {
	nothing := math.NaN()
	p := Properties{
		Name: name, Length: len(sequence), Mass: nothing, Charge: nothing, IsoelectricPoint: nothing, Extinction: nothing, ExtinctionDisulfide: nothing,
		Hydropathy: nothing, Aromatic: nothing, Charged: nothing, NetCharge: nothing, Kappa: nothing, ChargeDecoration: nothing, Disorder: nothing,
	}
	if letter, position := firstUnknown(sequence); position > 0 {
		p.Note = fmt.Sprintf("only the length: %c at position %d is not one of the twenty amino acids", letter, position)
		return p
	}
	if sequence == "" {
		p.Note = "empty"
		return p
	}
	p.ofComposition(sequence)
	all := groups(sequence)
	p.Charge, p.IsoelectricPoint = netCharge(all, pH), isoelectricPoint(all)
	q := charges(sequence)
	p.ChargeDecoration, p.Kappa = chargeDecoration(q), kappa(q)
	p.Disorder = input.Disorder(p.Hydropathy, p.NetCharge)
	p.Note = p.notes()
	return p
}

func (p *Properties) ofComposition(sequence string) {
	n := float64(len(sequence))
	counts := composition(sequence)
	p.Mass, p.Hydropathy = water, 0
	for k, count := range counts {
		p.Mass += float64(count) * masses[k]
		p.Hydropathy += float64(count) * input.Hydropathies[k] / n
	}
	of := func(some string) (sum float64) {
		for k := range some {
			sum += float64(counts[strings.IndexByte(md.Letters, some[k])])
		}
		return sum
	}
	// Pace et al., 10.1002/pro.5560041120.
	p.Extinction = 5500*of("W") + 1490*of("Y")
	p.ExtinctionDisulfide = p.Extinction + 125*math.Floor(of("C")/2)
	p.Aromatic = of("FWY") / n
	p.Charged, p.NetCharge = of("DEKR")/n, (of("KR")-of("DE"))/n
}

func (p *Properties) notes() string {
	var notes []string
	if math.IsNaN(p.Kappa) {
		notes = append(notes, "no kappa: it needs 6 residues and charges of both signs")
	}
	if p.Length < input.MinDisorderLength {
		p.Disorder = math.NaN()
		notes = append(notes, fmt.Sprintf("no disorder: it needs %d residues", input.MinDisorderLength))
	}
	return strings.Join(notes, "; ")
}
