package structure

import (
	"slices"
	"strings"
)

// letters maps the standard amino acids, and the usual names of their other protonation
// states, to one-letter codes.
var letters = pairs(`ALA:A ARG:R ASN:N ASP:D CYS:C GLN:Q GLU:E GLY:G HIS:H ILE:I LEU:L LYS:K MET:M PHE:F PRO:P
	SER:S THR:T TRP:W TYR:Y VAL:V HID:H HIE:H HIP:H HSD:H HSE:H HSP:H CYX:C CYM:C ASH:D GLH:E LYN:K ARN:R TYM:Y`)

// parents maps modified amino acids to their standard parents, according to the Chemical
// Component Dictionary.
var parents = pairs(`
	AGM:ARG
	MEN:ASN
	PHD:ASP BFD:ASP
	CAF:CYS CAS:CYS CME:CYS CSA:CYS CSD:CYS CSO:CYS CSP:CYS CSS:CYS CSX:CYS OCS:CYS SCH:CYS SCY:CYS SEC:CYS SMC:CYS SNC:CYS YCM:CYS
	MEQ:GLN
	CGU:GLU
	SAR:GLY
	HIC:HIS MHS:HIS NEP:HIS
	MLE:LEU
	ALY:LYS KCR:LYS KCX:LYS KPI:LYS LLP:LYS M3L:LYS MLY:LYS MLZ:LYS PYL:LYS
	FME:MET MHO:MET MSE:MET SME:MET
	MEA:PHE
	HYP:PRO
	OAS:SER SAC:SER SEP:SER
	TPO:THR
	TRQ:TRP
	NIY:TYR OMY:TYR PTR:TYR TPQ:TYR TYI:TYR TYS:TYR
	MVA:VAL`)

// heavy lists the side-chain heavy atoms of the standard amino acids.
var heavy = map[string]string{
	"ALA": "CB", "ARG": "CB CG CD NE CZ NH1 NH2", "ASN": "CB CG OD1 ND2", "ASP": "CB CG OD1 OD2", "CYS": "CB SG",
	"GLN": "CB CG CD OE1 NE2", "GLU": "CB CG CD OE1 OE2", "GLY": "", "HIS": "CB CG ND1 CD2 CE1 NE2", "ILE": "CB CG1 CG2 CD1",
	"LEU": "CB CG CD1 CD2", "LYS": "CB CG CD CE NZ", "MET": "CB CG SD CE", "PHE": "CB CG CD1 CD2 CE1 CE2 CZ", "PRO": "CB CG CD",
	"SER": "CB OG", "THR": "CB OG1 CG2", "TRP": "CB CG CD1 CD2 NE1 CE2 CE3 CZ2 CZ3 CH2", "TYR": "CB CG CD1 CD2 CE1 CE2 CZ OH", "VAL": "CB CG1 CG2",
}

// Residue names.
var (
	nucleos = strings.Fields("A C G U I DA DC DG DT DU DI")
	unclear = strings.Fields("ASX GLX UNK") // amino acids that the file does not specify further
	// four-letter names of amino acids: other protonation states, or termini
	protonated = strings.Fields("ARGN ASPH ASPP CASN CASP CMET CYS2 CYSH CYSM CYSX GLUH GLUP HIS1 HIS2 HISA HISB HISD HISE HISH HISP LYSH LYSN TYRM")
	caps       = strings.Fields("ACE NH2 NME NMA FOR NHE") // at the ends of chains
)

func pairs(text string) map[string]string {
	all := map[string]string{}
	for pair := range strings.FieldsSeq(text) {
		name, of, _ := strings.Cut(pair, ":")
		all[name] = of
	}
	return all
}

// isAmino reports whether name is an amino acid residue name.
func isAmino(name string) bool {
	return letters[name] != "" || parents[name] != "" || slices.Contains(unclear, name)
}
