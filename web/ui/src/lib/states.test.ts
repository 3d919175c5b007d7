import { expect, test } from 'vitest'
import { runsOn, stateOf } from './states'

test('a job that was stopped, or whose result is doubtful, has a word of its own', () => {
  expect(stateOf({ status: 'COMPLETED' }).word).toBe('Completed')
  expect(stateOf({ status: 'COMPLETED', warnings: ['Rg is not converged'] }).word).toBe('Completed with warnings')
  expect(stateOf({ status: 'FAILED', warnings: ['x'] }).word).toBe('Failed')
  expect(stateOf({ status: 'FAILED', failureCode: 'STOPPED' }).word).toBe('Cancelled')
})

test('a job of a cluster is named as Slurm names it', () => {
  expect(runsOn({ executor: 'local' })).toBe('on this server')
  expect(runsOn({ executor: 'slurm' })).toBe('on the cluster')
  expect(runsOn({ executor: 'slurm', slurm: { job: '766_3' } })).toBe('Slurm job 766_3')
  expect(runsOn({ executor: 'slurm', slurm: { job: '4711', node: 'n1', partition: 'long' } })).toBe('Slurm job 4711 on n1, partition long')
})
