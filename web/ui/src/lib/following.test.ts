import { expect, test, vi } from 'vitest'
import type { Job } from './api'
import type { Filters } from './jobs.svelte'

vi.mock('./live.svelte', () => ({ Live: class {} }))
vi.mock('./jobs.svelte', () => ({ pageSize: 3 }))
const { after } = await import('./following')

const filters: Filters = { mine: false, search: '', status: [], algorithm: '', tag: [], batch: '', by: '', startKey: '' }
const job = (jobId: string, more: Partial<Job> = {}) => ({ jobId, jobName: jobId, status: 'QUEUED', attempts: 0, ...more }) as Job
const told = (event: string, data: Partial<Job>) => ({ event, data: { attempts: 0, ...data } as never })
const ids = (jobs: Job[]) => jobs.map((j) => j.jobId).join()

test('a batch of events changes rows, in order', () => {
  const page = { jobs: [job('5', { queue: { position: 1 } as never }), job('4', { status: 'RUNNING', progress: { fraction: 0.5 } as never })], fresh: [] }
  const next = after(page, [told('job', { jobId: '5', status: 'RUNNING', attempts: 1 }), told('job', { jobId: '4', status: 'COMPLETED', attempts: 1 }), told('job', { jobId: '6', status: 'QUEUED' }), told('job', { jobId: '6', status: 'RUNNING', attempts: 1 })], filters, false)
  expect(ids(next.jobs)).toBe('6,5,4')
  expect(next.jobs.map((j) => j.status)).toEqual(['RUNNING', 'RUNNING', 'COMPLETED'])
  expect(next.jobs[1]).not.toHaveProperty('queue')
  expect(next.jobs[2]).not.toHaveProperty('progress')
})

test('new jobs wait while rows are held, up to a limit', () => {
  const many = Array.from({ length: 1500 }, (_, i) => told('job', { jobId: `b${String(i).padStart(5, '0')}`, status: 'QUEUED' }))
  const next = after({ jobs: [job('a')], fresh: [job('b')] }, many, filters, true)
  expect(ids(next.jobs)).toBe('a')
  expect([next.fresh.length, next.fresh[0]!.jobId]).toEqual([1000, 'b01499'])
})

test('a page has no more rows than fit, and a longer one does not shrink', () => {
  expect(ids(after({ jobs: [job('3'), job('2'), job('1')], fresh: [] }, [told('job', { jobId: '4', status: 'QUEUED' })], filters, false).jobs)).toBe('4,3,2')
})

test('deleted jobs are removed everywhere', () => {
  const next = after({ jobs: [job('2'), job('1')], fresh: [job('3')] }, [told('deleted', { jobId: '3' }), told('deleted', { jobId: '1' })], filters, false)
  expect([ids(next.jobs), ids(next.fresh)]).toEqual(['2', ''])
})

test('jobs of other pages, batches and states are not added', () => {
  const events = [told('job', { jobId: '1', status: 'QUEUED' }), told('job', { jobId: '9', status: 'QUEUED', batch: 'b' } as never), told('job', { jobId: '8', status: 'QUEUED', attempts: 2 })]
  expect(ids(after({ jobs: [job('5')], fresh: [] }, events, filters, false).jobs)).toBe('5')
  expect(ids(after({ jobs: [job('5')], fresh: [] }, [told('job', { jobId: '7', status: 'QUEUED' })], { ...filters, status: ['FAILED'] }, false).jobs)).toBe('5')
})
