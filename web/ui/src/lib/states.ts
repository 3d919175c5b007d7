// How states are shown: a glyph, a word and a color.
import type { Counts, Job } from './api'
import { count } from './time'

export interface Shown { glyph: string; word: string; colour: string }

const states: Record<string, Shown> = {
  QUEUED: { glyph: '○', word: 'Queued', colour: 'var(--st-queued)' },
  RUNNING: { glyph: '◐', word: 'Running', colour: 'var(--st-running)' },
  COMPLETED: { glyph: '✓', word: 'Completed', colour: 'var(--st-completed)' },
  FAILED: { glyph: '✕', word: 'Failed', colour: 'var(--st-failed)' },
  DOUBTFUL: { glyph: '⚠', word: 'Completed with warnings', colour: 'var(--st-warn)' },
  CANCELLED: { glyph: '–', word: 'Cancelled', colour: 'var(--st-warn)' },
}

/** The state of a job, distinguishing stopped from failed jobs, and results with warnings from others. */
export function stateOf(job: Pick<Job, 'status' | 'warnings'> & { failure?: Job['failure']; failureCode?: string }): Shown {
  const code = job.failure?.code ?? job.failureCode
  if (job.status === 'FAILED' && code === 'STOPPED') return states.CANCELLED!
  if (job.status === 'COMPLETED' && job.warnings?.length) return states.DOUBTFUL!
  return states[job.status] ?? { glyph: '?', word: String(job.status), colour: 'var(--muted)' }
}

/** The prefix of a job name in the title of the browser tab: its progress or state. */
export function tabMark(job: Pick<Job, 'status' | 'warnings' | 'progress' | 'subjobCounts'> & { failure?: Job['failure'] }): string {
  const rows = job.subjobCounts
  if (rows && job.status === 'RUNNING') return `${rows.COMPLETED + rows.FAILED}/${rows.QUEUED + rows.RUNNING + rows.COMPLETED + rows.FAILED}`
  if (job.status === 'RUNNING' && job.progress) return `${Math.floor(100 * job.progress.fraction)} %`
  return stateOf(job).glyph
}

/** The queue position of a job, and why it waits. */
export function waiting(job: Job): string {
  const q = job.queue
  const parts: string[] = []
  if (q?.position) parts.push(`${q.position}${q.of ? ` of ${q.of}` : ''} in the queue`)
  if (job.statusReason) parts.push(job.statusReason)
  return parts.join(' · ')
}

/** The state of the queue in one line. */
export function queueLine(counts: Pick<Counts, 'QUEUED' | 'RUNNING'> | undefined): string {
  if (!counts) return ''
  const { RUNNING: running, QUEUED: queued } = counts
  if (running + queued === 0) return 'The queue is empty; new jobs start immediately.'
  return `${count(running, 'job')} running, ${queued === 0 ? 'none waiting' : `${queued.toLocaleString('en')} waiting`}.`
}

/** Where a job runs or ran: on a cluster, with the Slurm job once it is known. */
export function runsOn({ executor, slurm }: Pick<Job, 'executor' | 'slurm'>): string {
  if (!slurm) return executor === 'slurm' ? 'on the cluster' : 'on this server'
  return `Slurm job ${slurm.job}${slurm.node ? ` on ${slurm.node}` : ''}${slurm.partition ? `, partition ${slurm.partition}` : ''}`
}
