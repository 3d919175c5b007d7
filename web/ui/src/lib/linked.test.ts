import { expect, test } from 'vitest'
import { Linked } from './linked.svelte'
import type { Residue } from './molecule'

const residue = (chain: string, n: number): Residue => ({ chain, residue: n, name: `${chain} ALA ${n}` })
const protein = [residue('A', 1), residue('A', 2), residue('B', 1)]
const ligand = residue('C', 500)

function linked() {
  const l = new Linked()
  l.show('model', { residues: protein, tokens: [...protein, ligand, ligand] })
  return l
}

test('a cell marks two residues, one on the diagonal', () => {
  const l = linked()
  l.point({ row: 0, col: 2 }, 3)
  expect(l.marked).toEqual([protein[0], protein[2]])
  l.point({ row: 1, col: 1 }, 3)
  expect(l.marked).toEqual([protein[1]])
  l.point(undefined, 3)
  expect(l.marked).toEqual([])
})

test('a residue points at its row and column', () => {
  const l = linked()
  l.join(3)
  l.over({ chain: 'B', residue: 1 })
  expect(l.cell).toEqual({ row: 2, col: 2 })
  l.over({ chain: 'B', residue: 9 })
  expect(l.cell).toBeUndefined()
  l.over(undefined)
  expect(l.cell).toBeUndefined()
})

test('rows that are tokens have the atoms of ligands', () => {
  const l = linked()
  l.join(5)
  l.over({ chain: 'C', residue: 500 })
  expect(l.cell).toEqual({ row: 3, col: 3 })
  l.point({ row: 4, col: 0 }, 5)
  expect(l.marked).toEqual([ligand, protein[0]])
})

test('a matrix of something else marks nothing', () => {
  const l = linked()
  expect([l.of(4, 4), l.of(3, 4), l.of(0, 0)]).toEqual([undefined, undefined, undefined])
  l.point({ row: 0, col: 0 }, 4)
  expect(l.marked).toEqual([])
  l.over({ chain: 'A', residue: 1 })
  expect(l.cell).toBeUndefined()
  l.show('another', { residues: [ligand], tokens: [] })
  expect(l.of(3, 3)).toBe(protein)
})
