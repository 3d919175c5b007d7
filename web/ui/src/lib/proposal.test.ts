import { expect, test } from 'vitest'
import type { Parameter } from './api'
import { numbered, proposed } from './proposal'

const sequences = { name: 'sequences', title: 'Sequences', required: true, advanced: false, schema: { type: ['array', 'string'], items: { type: 'string' } } } as unknown as Parameter
const names = { name: 'names', title: 'Names', type: 'array', required: false, advanced: false, schema: { type: 'array', items: { type: 'string' } } } as unknown as Parameter
const file = { name: 'receptor', title: 'Receptor', type: 'string', required: true, advanced: false, file: ['.pdb'], schema: { type: 'string' } } as unknown as Parameter

test.each([
  ['a file', [file], { receptor: `sha256:${'0'.repeat(64)}/1aki clean.pdb.gz` }, '1aki-clean-vina'],
  ['a result', [file], { receptor: 'job:fold-2/best.pdb' }, 'fold-2-vina'],
  ['a file by its number', [file], { receptor: '01K9ZXV4QY0000000000000000' }, 'model-vina'],
  ['FASTA', [sequences], { sequences: '>sp|P15516|HIS3\nDSHAK' }, 'sp-vina'],
  ['named sequences', [sequences, names], { sequences: 'DSHAK', names: 'Hst5\nHst3' }, 'Hst5-vina'],
  ['nothing yet', [sequences, file], {}, 'vina'],
])('a name after %s', (_, parameters, typed, want) => {
  expect(proposed('vina', parameters as Parameter[], typed as Record<string, string>, { '01K9ZXV4QY0000000000000000': 'model.pdb' })).toBe(want)
})

test('names go on counting', () => {
  expect([1, 2, 3].map((n) => numbered('hst5', n))).toEqual(['hst5', 'hst5-2', 'hst5-3'])
  expect([1, 2].map((n) => numbered('hst5-2', n))).toEqual(['hst5-2', 'hst5-3'])
  expect(numbered('fold-2024', 2)).toBe('fold-2024-2')
  expect(numbered('fold-2024-1', 2)).toBe('fold-2024-1-2')
})
