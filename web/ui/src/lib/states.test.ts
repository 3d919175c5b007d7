import { expect, test } from 'vitest'
import { queueLine, runsOn, stateOf, tabMark } from './states'

test('stopped jobs and results with warnings have their own words', () => {
  expect(stateOf({ status: 'COMPLETED' }).word).toBe('Completed')
  expect(stateOf({ status: 'COMPLETED', warnings: ['Rg is not converged'] }).word).toBe('Completed with warnings')
  expect(stateOf({ status: 'FAILED', warnings: ['x'] }).word).toBe('Failed')
  expect(stateOf({ status: 'FAILED', failureCode: 'STOPPED' }).word).toBe('Cancelled')
})

test('a tab shows the progress of its job', () => {
  expect(tabMark({ status: 'QUEUED' })).toBe('○')
  expect(tabMark({ status: 'RUNNING', progress: { fraction: 0.629 } })).toBe('62 %')
  expect(tabMark({ status: 'RUNNING' })).toBe('◐')
  expect(tabMark({ status: 'RUNNING', subjobCounts: { QUEUED: 5, RUNNING: 1, COMPLETED: 3, FAILED: 1 } })).toBe('4/10')
  expect(tabMark({ status: 'COMPLETED', warnings: ['x'] })).toBe('⚠')
})

test('the queue in a line', () => {
  expect(queueLine({ RUNNING: 0, QUEUED: 0 })).toBe('The queue is empty; new jobs start immediately.')
  expect(queueLine({ RUNNING: 1, QUEUED: 0 })).toBe('1 job running, none waiting.')
  expect(queueLine({ RUNNING: 2, QUEUED: 1200 })).toBe('2 jobs running, 1,200 waiting.')
})

test('a cluster job has its Slurm name', () => {
  expect(runsOn({ executor: 'local' })).toBe('on this server')
  expect(runsOn({ executor: 'slurm' })).toBe('on the cluster')
  expect(runsOn({ executor: 'slurm', slurm: { job: '766_3' } })).toBe('Slurm job 766_3')
  expect(runsOn({ executor: 'slurm', slurm: { job: '4711', node: 'n1', partition: 'long' } })).toBe('Slurm job 4711 on n1, partition long')
})
