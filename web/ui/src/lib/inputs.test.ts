import { expect, test } from 'vitest'
import { search, type Query } from './address'
import type { BatchTable } from './api'
import { handedOn, inputsOf, ofBatch, rowFiles } from './inputs'

test('the best rows of a batch, as many as were asked for', async () => {
  const asked: [string, Query][] = []
  const read = async (path: string, query: Query = {}) => {
    asked.push([path, query])
    const from = Number(query.startKey || 0)
    const n = Math.min(Number(query.limit), 400)
    return { rows: Array.from({ length: n }, (_, i) => ({ jobName: `s/${from + i}` })), startKey: String(from + n) } as unknown as BatchTable
  }
  const q = new URLSearchParams(search(ofBatch('my screen', 5000, { reference: 'pose.sdf', path: 'pose.sdf', title: '' }, 'metric:affinity', 'asc')))
  const inputs = await inputsOf(new URLSearchParams(search(handedOn(q))), undefined, read)
  expect([inputs.length, inputs[0], inputs.at(-1)]).toEqual([1000, 'job:s/0/pose.sdf', 'job:s/999/pose.sdf'])
  expect(asked[0]).toEqual(['jobs/my%20screen/table', { status: ['COMPLETED'], limit: 1000, startKey: '', sort: 'metric:affinity', order: 'asc' }])
  expect(asked).toHaveLength(3)
})

test('outputs stand for files whose names differ between rows', () => {
  const outputs = [{ name: 'model', title: 'Model', file: '*_rank_1.pdb' }, { name: 'all', title: 'All', file: 'd/*.sdf' }]
  expect(rowFiles(['x+1_rank_1.pdb', 'd/a.sdf', 'd/b.sdf', 'e/x_rank_1.pdb'], outputs)).toEqual([
    { reference: '@model', path: 'x+1_rank_1.pdb', title: 'Model (x+1_rank_1.pdb)' },
    { reference: 'd/a.sdf', path: 'd/a.sdf', title: 'd/a.sdf' },
    { reference: 'd/b.sdf', path: 'd/b.sdf', title: 'd/b.sdf' },
    { reference: 'e/x_rank_1.pdb', path: 'e/x_rank_1.pdb', title: 'e/x_rank_1.pdb' },
  ])
  expect(rowFiles(['axpdb'], [{ name: 'm', title: 'M', file: 'a.pdb' }])[0]!.reference).toBe('axpdb')
})

test('files that are named', async () => {
  const q = new URLSearchParams('input=job:a/x.pdb&input=inputs/b.pdb&search=dock')
  expect(await inputsOf(q)).toEqual(['job:a/x.pdb', 'inputs/b.pdb'])
  expect(search(handedOn(q))).toBe('?input=job%3Aa%2Fx.pdb&input=inputs%2Fb.pdb')
})
