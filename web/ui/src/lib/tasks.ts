// Common tasks, and the search that finds their programs.
export const tasks = [
  { title: 'Predict a structure', about: 'From a sequence, with ligands or partners', search: 'fold' },
  { title: 'Dock a ligand', about: 'Small molecules into a binding site', search: 'dock' },
  { title: 'Simulate', about: 'Molecular dynamics, disordered proteins, condensates', search: 'simulation' },
  { title: 'Align sequences', about: 'Multiple alignments of proteins or DNA', search: 'align' },
  { title: 'Find homologs', about: 'Related proteins in databases', search: 'homologs' },
  { title: 'Build a tree', about: 'Phylogeny from an alignment', search: 'tree' },
  { title: 'Analyze a structure', about: 'Contacts, gaps, surface, secondary structure', search: 'structure analysis' },
  { title: 'Protein properties', about: 'Mass, pI, charge, hydropathy of a sequence', search: 'ProtParam' },
] as const
