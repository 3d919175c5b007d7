# Reads the report of xTB; warns about doubtful results, and writes the free energy of a minimum to metrics.json.
/^ *projected vibrational frequencies/ { split("", low); n = 0 }
/^eigval :/ { for (i = 3; i <= NF; i++) if ($i < 0) low[++n] = $i }
/# imaginary freq\./ { imaginary = $5 } # below -20 cm⁻¹: xTB treats smaller ones as real
/TOTAL FREE ENERGY/ { free = $5 }
/HOMO-LUMO GAP/ { gap = $4 }
END {
	if (imaginary > 0) {
		for (i = 1; i <= n; i++) if (low[i] < -20) list = list (list ? ", " : "") low[i]
		print "molrun:warning The geometry is a saddle point, not a minimum: imaginary frequencies of " list " cm⁻¹. No free energy is reported. Start again from xtbhess.xyz, which is displaced along the first of them, or from a geometry without symmetry."
		free = ""
	}
	if (gap != "" && gap < 0.01)
		print "molrun:warning The HOMO-LUMO gap is 0: GFN2-xTB does not describe this state. Check charge and unpaired electrons; another multiplicity may be the ground state."
	print (free == "" ? "{}" : "{\"free_energy_Eh\": " free "}") > metrics
}
