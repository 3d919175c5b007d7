package input

import (
	"fmt"

	"molrun/app/engine/md"
)

// Conditions reads the simulation conditions.
func (r *ChainReader) Conditions() md.Conditions {
	return md.Conditions{
		Temperature:    r.Number(Temperature),
		PH:             r.Number(PH),
		IonicStrength:  r.Number(IonicStrength),
		Friction:       r.Number(Friction),
		ChargedTermini: r.Boolean("charged_termini", true),
	}
}

// ConditionWarnings returns warnings about conditions for which the model extrapolates.
func ConditionWarnings(c md.Conditions) []string {
	var texts []string
	if c.Temperature < 277 || c.Temperature > 323 {
		texts = append(texts, "the model was parameterized for 277 to 323 K; outside this range it extrapolates")
	}
	if c.PH < 5 || c.PH > 9 {
		texts = append(texts, "in this model only histidine responds to pH; outside pH 5 to 9, real proteins have other residues that do")
	}
	if c.IonicStrength < 0.01 {
		texts = append(texts, fmt.Sprintf("below 0.01 mol/L salt, the model extrapolates: charges act over %.1f nm (Debye length) and more, but only up to a cutoff of 4 nm",
			md.DebyeLength(c.Temperature, c.IonicStrength)))
	}
	if c.IonicStrength > 0.5 {
		texts = append(texts, "above 0.5 mol/L salt, Debye-Hückel theory is a poor approximation of electrostatics")
	}
	return texts
}

// Warnings returns the reasons why results for a sequence might be unreliable.
func Warnings(residues string) []string {
	var texts []string
	if looksFolded(residues) {
		texts = append(texts, "the composition is typical of folded proteins (Uversky 2000); "+
			"the model has no secondary or tertiary structure and is not valid for folded domains")
	}
	if looksLikeDNA(residues) {
		texts = append(texts, "all residues are A, C, G or T: is this DNA? It is simulated as a protein")
	}
	return texts
}
