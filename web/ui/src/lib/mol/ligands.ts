// Ligands and the residues around them.
import { StructureElement, StructureProperties, Unit, type Structure } from 'molstar/lib/mol-model/structure.js'
import { OrderedSet } from 'molstar/lib/mol-data/int.js'
import type { Residue, Residues } from '../molecule'
import type { Parts } from './drawing'

const reach = 5 // ångströms between atoms in contact
const leastAtoms = 5 // of a ligand; smaller ones are ions and solvent
const most = 100 // ligands listed

export interface FoundLigand { entry: number; unit: number; residue: number; label: string }

type AtomUnit = Unit.Atomic

const residueOf = (unit: AtomUnit, element: number) => unit.residueIndex[element]!

/** The atoms of a structure by residue, unit by unit. */
function* residues(structure: Structure): Generator<{ unit: AtomUnit; residue: number; indices: number[] }> {
  for (const unit of structure.units) {
    if (!Unit.isAtomic(unit)) continue
    let indices: number[] = []
    let residue = -1
    for (let i = 0; i < unit.elements.length; i++) {
      const r = residueOf(unit, unit.elements[i]!)
      if (r !== residue && indices.length > 0) {
        yield { unit, residue, indices }
        indices = []
      }
      residue = r
      indices.push(i)
    }
    if (indices.length > 0) yield { unit, residue, indices }
  }
}

const location = StructureElement.Location.create()

/** The readable name of a residue. */
export function residueName(structure: Structure, unit: Unit, element: number): string {
  const l = StructureElement.Location.set(location, structure, unit, element as never)
  const chain = StructureProperties.chain.auth_asym_id(l)
  return `${chain ? chain + ' ' : ''}${StructureProperties.atom.auth_comp_id(l)} ${StructureProperties.residue.auth_seq_id(l)}`
}

const mostResidues = 20_000 // in a structure whose residues are named

/** The residues of polymers; tokens also include the atoms of everything else. */
export function residuesOf({ polymer, rest }: Parts): Residues {
  const all: Residue[] = []
  const atoms: Residue[] = []
  for (const [structure, to] of [[polymer, all], [rest, atoms]] as const) {
    if (!structure) continue
    for (const { unit, indices } of residues(structure)) {
      if (all.length > mostResidues) return { residues: [], tokens: [] }
      const element = unit.elements[indices[0]!]!
      const name = residueName(structure, unit, element)
      StructureElement.Location.set(location, structure, unit, element)
      const r = { chain: StructureProperties.chain.auth_asym_id(location), residue: StructureProperties.residue.auth_seq_id(location), name }
      if (to === all) all.push(r)
      else indices.forEach(() => atoms.push(r))
    }
  }
  return { residues: all, tokens: [...all, ...atoms] }
}

/** The ligands in the non-polymer parts of structures. */
export function findLigands(parts: readonly (Structure | undefined)[], names: readonly string[]): FoundLigand[] {
  const found: FoundLigand[] = []
  parts.forEach((structure, entry) => {
    if (!structure) return
    for (const { unit, residue, indices } of residues(structure)) {
      if (indices.length < leastAtoms || found.length >= most) continue
      const name = residueName(structure, unit, unit.elements[indices[0]!]!)
      found.push({ entry, unit: unit.id, residue, label: parts.length > 1 ? `${name} of ${names[entry]}` : name })
    }
  })
  return found
}

function lociOf(structure: Structure, wanted: Map<Unit, number[]>): StructureElement.Loci {
  return StructureElement.Loci(structure, [...wanted].map(([unit, indices]) => ({ unit, indices: OrderedSet.ofSortedArray(indices as never) })))
}

/** The ligand in the current frame of its structure. */
export function ligandIn(structure: Structure, ligand: FoundLigand): StructureElement.Loci | undefined {
  for (const { unit, residue, indices } of residues(structure)) {
    if (unit.id === ligand.unit && residue === ligand.residue) return lociOf(structure, new Map([[unit, indices]]))
  }
  return undefined
}

export function positions(loci: StructureElement.Loci): Float32Array {
  const out: number[] = []
  for (const { unit, indices } of loci.elements) {
    const c = unit.conformation
    OrderedSet.forEach(indices, (i) => {
      const e = unit.elements[i]!
      out.push(c.x(e), c.y(e), c.z(e))
    })
  }
  return Float32Array.from(out)
}

function bounds(points: Float32Array): [low: number[], high: number[]] {
  const low = [Infinity, Infinity, Infinity]
  const high = [-Infinity, -Infinity, -Infinity]
  points.forEach((v, i) => {
    low[i % 3] = Math.min(low[i % 3]!, v)
    high[i % 3] = Math.max(high[i % 3]!, v)
  })
  return [low, high]
}

/** The residues of a structure that have an atom within 5 Å of one of the points. */
export function around(structure: Structure, points: Float32Array, not?: FoundLigand): { loci: StructureElement.Loci; names: string[] } {
  const wanted = new Map<Unit, number[]>()
  const names: string[] = []
  const [low, high] = bounds(points)
  for (const { unit, residue, indices } of residues(structure)) {
    if (not && unit.id === not.unit && residue === not.residue) continue
    if (!indices.some((i) => near(unit, unit.elements[i]!, points, low, high))) continue
    wanted.set(unit, [...(wanted.get(unit) ?? []), ...indices])
    names.push(residueName(structure, unit, unit.elements[indices[0]!]!))
  }
  return { loci: lociOf(structure, wanted), names }
}

function near(unit: AtomUnit, element: number, points: Float32Array, low: number[], high: number[]): boolean {
  const c = unit.conformation
  const at = [c.x(element as never), c.y(element as never), c.z(element as never)]
  if (at.some((v, i) => v < low[i]! - reach || v > high[i]! + reach)) return false
  for (let p = 0; p < points.length; p += 3) {
    if ((points[p]! - at[0]!) ** 2 + (points[p + 1]! - at[1]!) ** 2 + (points[p + 2]! - at[2]!) ** 2 <= reach * reach) return true
  }
  return false
}
