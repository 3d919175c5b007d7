import { expect, test } from 'vitest'
import type { Row } from './api'
import { grouped, reasonOf, saysMore } from './failures'

const row = (n: number, failureMessage: string, failureCode = 'EXIT_STATUS', source = `lig${n}.sdf`) => ({ row: n, jobName: `screen-${n}`, source, failureCode, failureMessage }) as Row

test('equal reasons are grouped, the most frequent first', () => {
  const groups = grouped([row(1, 'Out of memory.', 'OUT_OF_MEMORY'), row(2, 'The ligand has no atoms.'), row(3, 'The job was stopped by ann@lab.example.', 'STOPPED'), row(4, 'The ligand has no atoms.'), row(5, 'The job was stopped by ann@lab.example.', 'STOPPED'), row(6, 'The job was stopped by ann@lab.example.', 'STOPPED')])
  expect(groups.map((g) => [g.rows.length, g.sentence])).toEqual([[2, 'The ligand has no atoms.'], [1, 'Out of memory.'], [3, 'The job was stopped by ann@lab.example.']])
})

test('a row’s own name and source do not distinguish reasons', () => {
  const groups = grouped([row(1, 'lig1.sdf has no atoms.'), row(2, 'lig2.sdf has no atoms.'), row(3, 'screen-3: no space.')])
  expect(groups.map((g) => [g.rows.length, g.sentence])).toEqual([[2, '… has no atoms.'], [1, 'screen-3: no space.']])
})

test('a row without a sentence has its code', () => {
  expect(reasonOf({ jobName: 'a', failureCode: 'LOST' })).toBe('LOST')
  expect(reasonOf({ jobName: 'a' })).toBe('It failed.')
  expect(reasonOf({ jobName: 'in', source: '1', failureMessage: 'in 1 of 2' })).toBe('in 1 of 2')
})

test('the end of a log that repeats the sentence is left out', () => {
  expect(saysMore('molrun: The table has no column smiles, but compound.\n', 'The table has no column smiles, but compound.')).toBe(false)
  expect(saysMore('line 7: x\nmolrun: The table has no column smiles.\n', 'The table has no column smiles.')).toBe(true)
  expect(saysMore('', 'It failed.')).toBe(false)
})
