// Typical searches in the descriptions of the algorithm files of this program.
import { expect, test } from 'vitest'
import { found, grouped, slip } from './programs'

const texts = Object.entries(import.meta.glob<string>(['../../../../app/algorithm/builtin/*.toml', '../../../../app/algorithm/builtin/catalogue/*/algorithm.toml'], { query: '?raw', import: 'default', eager: true }))
  .filter(([path]) => !path.endsWith('/skeleton.toml'))
  .map(([, text]) => text.split(/^\[\[?parameters/m)[0]!)
const line = (text: string, key: string) => new RegExp(`^${key} = "(.*)"$`, 'm').exec(text)?.[1] ?? ''
const list = (text: string, key: string) => [...(new RegExp(`^${key} = \\[(.*)\\]$`, 'm').exec(text)?.[1] ?? '').matchAll(/"([^"]*)"/g)].map((m) => m[1]!)
const programs = texts.map((t) => ({
  type: line(t, 'type'), title: line(t, 'title'), description: /^description = """([\s\S]*?)"""/m.exec(t)?.[1] ?? '',
  categories: list(t, 'categories'), functions: list(t, 'functions'), keywords: list(t, 'keywords'),
}))

test.each([
  ['fold', /alphafold3|boltz|chai-1|colabfold|esmfold/], ['fold my protein', /alphafold3|boltz|chai-1|colabfold|esmfold/], ['structure prediction', /alphafold3|boltz|chai-1|colabfold|esmfold/],
  ['alphafold', /colabfold|alphafold3/], ['pLDDT', /colabfold|esmfold/], ['MD', /gromacs|lammps|cg-idp|cg-condensate/], ['molecular dynamics', /gromacs|lammps|cg-idp/], ['simulate a protein in water', /gromacs/],
  ['simulation', /gromacs|cg-idp|cg-condensate|lammps/], ['pI', /sequence-properties/], ['isoelectric point', /sequence-properties/], ['molecular weight', /sequence-properties|^properties/], ['weight', /sequence-properties|^properties/],
  ['extinction coefficient', /sequence-properties/], ['SASA', /freesasa/], ['surface area', /freesasa/], ['tree', /iqtree|fasttree/], ['phylogeny', /iqtree|fasttree/], ['phylogenetic tree', /iqtree|fasttree/],
  ['blast', /blastp/], ['homologs', /blastp|phmmer|mmseqs-search/], ['alignment', /mafft|muscle|clustalo|kalign/], ['alingment', /mafft|muscle|clustalo|kalign/], ['align', /mafft|muscle|clustalo|kalign/],
  ['MSA', /mafft|muscle|clustalo|kalign|^msa/], ['align structures', /mustang|tm-align/], ['superimpose', /tm-align|mustang|theseus/], ['RMSD', /tm-align|theseus/], ['TM-score', /tm-align/], ['secondary structure', /dssp/],
  ['helix', /dssp/], ['dock', /vina/], ['docking', /vina/], ['autodok', /vina/], ['ligand binding', /vina|boltz/], ['cluster', /mmseqs-cluster|cd-hit/], ['CD-HIT', /cd-hit/], ['pKa', /propka/], ['disordered protein', /cg-idp/],
  ['IDP', /cg-idp/], ['phase separation', /cg-condensate|cg-binodal/], ['LLPS', /cg-condensate|cg-binodal/], ['phase diagram', /cg-binodal/], ['DFT', /psi4|nwchem/], ['quantum chemistry', /psi4|xtb|nwchem/],
  ['logP', /^properties/], ['descriptors', /^properties/], ['SMILES to 3D', /conformers/], ['convert', /convert/], ['add hydrogens', /prepare-structure/], ['missing residues', /structure-summary|pdbfixer/], ['electrostatics', /electrostatics/],
  ['inverse folding', /^(protein|ligand)mpnn/], ['binder design', /bindcraft|rfdiffusion/], ['Pfam', /hmmsearch/], ['cg-idp', /^cg-idp/], ['vina', /vina/], ['mafft', /mafft/], ['contact map', /contacts/], ['conformrs', /conformers/], ['PLIP', /plip/], ['interactions', /plip|contacts/], ['lDDT', /openstructure/], ['heat of formation', /mopac/],
  ['redundancy', /cd-hit|mmseqs-cluster/], ['selenomethionine', /pdbfixer/],
])('“%s” finds the right program first', (search, right) => {
  expect(found(programs, search)[0]?.type).toMatch(right)
})

test('a search without matches finds nothing, and one without words everything', () => {
  expect(found(programs, 'xyzzy')).toEqual([])
  expect(found(programs, ' ')).toHaveLength(texts.length)
})

test('a slip is a letter or two', () => {
  const slips = [['alingment', 'alignment'], ['dokc', 'dock'], ['dockin', 'docking'], ['tree', 'free'], ['md', 'mx'], ['blast', 'beast'], ['blast', 'boasts']]
  expect(slips.map(([a, b]) => slip(a!, b!))).toEqual([true, true, true, false, false, true, false])
})

test('all programs are in a group of what they are for', () => {
  expect(grouped(programs).map((g) => g.title)).not.toContain('Other')
  expect(grouped([{ ...programs[0]!, functions: ['weather'] }]).map((g) => g.title)).toEqual(['Other'])
})
