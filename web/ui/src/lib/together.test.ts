import { expect, test } from 'vitest'
import type { View } from './api'
import { isMolecule, proteins } from './together'

const view = (kind: View['kind'], ...paths: string[]): View => ({ name: 'v', kind, title: 'V', files: paths.map((path) => ({ path, size: 1 })) })

test('molecules are shown with the proteins of a job', () => {
  const views = [view('table', 'ranked.csv'), view('structure', 'receptor.pdb'), view('structure', 'best.sdf'), view('structure', 'poses/1.sdf', 'poses/2.sdf'), view('structure', 'models/1.cif', 'models/2.cif')]
  expect(proteins(views)).toEqual(['receptor.pdb'])
  expect(proteins([view('structure', 'a.cif'), view('structure', 'a.cif'), view('trajectory', 'b.pdb'), view('structure')])).toEqual(['a.cif'])
})

test('molecules by their files', () => {
  expect(['best.sdf', 'a.mol2', 'b.SDF.gz', 'receptor.pdb', 'a.cif', 'x.txt'].map(isMolecule)).toEqual([true, true, true, false, false, false])
})
