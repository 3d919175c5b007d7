import { expect, test } from 'vitest'
import type { Algorithm, Parameter } from './api'
import { asked, memberOf, settingsFor, sourceIn, sourceOf, wordsOf } from './fanout'

const parameters = [
  { name: 'name', title: 'Name', schema: { type: 'string' } },
  { name: 'seqs', title: 'Sequences', schema: { type: ['array', 'string'] } },
  { name: 'steps', title: 'Steps', schema: { type: 'integer' } },
  { name: 'pdb', title: 'Structure', file: ['.pdb'], schema: { type: 'string' } },
] as unknown as Parameter[]

test('which settings a source can give', () => {
  expect(settingsFor('fasta', parameters).map((s) => s.name)).toEqual(['seqs', 'name'])
  expect(settingsFor('table', parameters).map((s) => s.name)).toEqual(['*', 'name', 'seqs', 'steps', 'pdb'])
  expect(settingsFor('folder', parameters).map((s) => s.name)).toEqual(['pdb'])
})

test('sources as the API takes them, and in words', () => {
  expect(sourceOf('fasta', 'job:design/out.fasta')).toBe('fasta:job:design/out.fasta')
  expect(sourceOf('table', 'job:a/hits.TSV')).toBe('tsv:job:a/hits.TSV')
  expect(sourceOf('table', 'inputs/rows.xlsx')).toBe('csv:inputs/rows.xlsx')
  expect(sourceOf('table', 'inputs/x.csv')).toBe('csv:inputs/x.csv')
  expect([sourceOf('folder', 'ligands'), sourceOf('folder', 'ligands/*.sdf')]).toEqual(['folder:ligands/*', 'folder:ligands/*.sdf'])
  expect(wordsOf('tsv:job:a/hits.tsv')).toBe('each row of a table: job:a/hits.tsv')
  expect(wordsOf(sourceOf('table', `sha256:${'a'.repeat(64)}/x.tsv`))).toBe('each row of a table: x.tsv')
  expect(wordsOf('fasta:job:a/b:c.fa')).toBe('each sequence of a FASTA file: job:a/b:c.fa')
})

test('files that can be sources', () => {
  expect(sourceIn('job:a/Hits.TSV')).toEqual({ source: 'tsv:job:a/Hits.TSV', title: 'row' })
  expect(sourceIn('job:a/s.fasta')).toEqual({ source: 'fasta:job:a/s.fasta', title: 'sequence' })
  expect(sourceIn('job:a/model.pdb')).toBeUndefined()
})

test('shared settings are next to the sources', () => {
  expect(memberOf({ seqs: 'fasta:x' }, { seqs: ['AA'], steps: 5 })).toEqual({ each: { seqs: 'fasta:x' }, settings: { steps: 5 } })
  expect(memberOf({ '*': 'csv:x' }, {})).toEqual({ each: { '*': 'csv:x' } })
})

test('a source from the URL', () => {
  const a = { parameters } as unknown as Algorithm
  expect(asked('fasta:job:a/b.fa', a)).toEqual({ seqs: 'fasta:job:a/b.fa' })
  expect(asked('csv:job:a/b.csv', a)).toEqual({ '*': 'csv:job:a/b.csv' })
  expect([asked('oops:x', a), asked(null, a), asked('folder:x/*', { parameters: [] } as unknown as Algorithm)]).toEqual([{}, {}, {}])
})
