import { expect, test } from 'vitest'
import { stateOf } from './states'

test('a job that was stopped, or whose result is doubtful, has a word of its own', () => {
  expect(stateOf({ status: 'COMPLETED' }).word).toBe('Completed')
  expect(stateOf({ status: 'COMPLETED', warnings: ['Rg is not converged'] }).word).toBe('Completed with warnings')
  expect(stateOf({ status: 'FAILED', warnings: ['x'] }).word).toBe('Failed')
  expect(stateOf({ status: 'FAILED', failureCode: 'STOPPED' }).word).toBe('Cancelled')
})
