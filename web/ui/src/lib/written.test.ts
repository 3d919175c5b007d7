import { expect, test } from 'vitest'
import { ApiError } from './api'
import { BadFile, notWritten, outdated } from './written'

const read = { path: 'a.fasta', size: 10, running: true, failed: false }

test('a file that was read while the job ran is read again when it has ended', () => {
  expect(outdated(read, { size: 10, running: false })).toBe(true)
  expect(outdated({ ...read, failed: true }, { size: 10, running: false })).toBe(true)
  expect(outdated({ ...read, running: false }, { size: 10, running: false })).toBe(false)
})

test('a file that could not be shown is read again when it has changed', () => {
  expect(outdated({ ...read, failed: true }, { size: 20, running: true })).toBe(true)
  expect(outdated({ ...read, failed: true }, { size: 10, running: true })).toBe(false)
  expect(outdated(read, { size: 20, running: true })).toBe(false) // it is shown; the view stays as it is
})

test('only a running job has files that are not written yet', () => {
  for (const e of [new BadFile('The file has no sequences.'), new ApiError(404, 'NOT_FOUND', 'There is no such file.')]) {
    expect(notWritten(true, e)).toBe(true)
    expect(notWritten(false, e)).toBe(false)
  }
  for (const e of [new ApiError(0, 'OFFLINE', 'The server is not responding.'), new ApiError(503, 'UNAVAILABLE', 'Too many'), new Error('The file could not be read.'), undefined]) expect(notWritten(true, e)).toBe(false)
})
