import { expect, test } from 'vitest'
import type { Job, Parameter } from './api'
import { given } from './ran'

const parameters = [{ name: 'file', title: 'Structure' }, { name: 'sequences', title: 'Sequences' }, { name: 'T', title: 'Temperature', unit: 'K', default: 293 }, { name: 'fast', title: 'Fast', default: false }] as unknown as Parameter[]
const lines = (settings: Record<string, unknown>, inputs: unknown[] = []) => given({ settings, inputs } as unknown as Job, parameters).map((g) => `${g.title}: ${g.text}${g.more && ` (${g.more})`}`)

test('inputs of a job: files, sequences, and settings other than defaults', () => {
  const file = `sha256:${'a'.repeat(64)}/model.pdb`
  expect(lines({ odd: 1, T: 310, fast: false, file }, [{ setting: 'file', filename: 'model.pdb', summary: '129 residues' }])).toEqual(['Structure: model.pdb (129 residues)', 'Temperature: 310 K', 'odd: 1'])
  expect(lines({ T: 293, sequences: ['MKTAYI'] })).toEqual(['Sequences: MKTAYI'])
  expect(lines({ sequences: ['A', 'C', 'D', 'E', 'F'] })).toEqual(['Sequences: A, C, D (and 2 more)'])
  expect(lines({ sequences: 'A'.repeat(1200) })).toEqual([`Sequences: ${'A'.repeat(60)}… (1,200 letters)`])
  expect(given({}, parameters)).toEqual([])
})
