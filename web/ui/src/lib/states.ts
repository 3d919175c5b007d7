// How states are shown: a glyph, a word and a colour.
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

/** The state of a job; one that somebody stopped is told from one that failed, and one with warnings from others. */
export function stateOf(job: Pick<Job, 'status' | 'warnings'> & { failure?: Job['failure']; failureCode?: string }): Shown {
  const code = job.failure?.code ?? job.failureCode
  if (job.status === 'FAILED' && code === 'STOPPED') return states.CANCELLED!
  if (job.status === 'COMPLETED' && job.warnings?.length) return states.DOUBTFUL!
  return states[job.status] ?? { glyph: '?', word: String(job.status), colour: 'var(--muted)' }
}

/** What a tab of the browser shows before the name of a job: how far it is, or how it stands. */
export function tabMark(job: Pick<Job, 'status' | 'warnings' | 'progress' | 'subjobCounts'> & { failure?: Job['failure'] }): string {
  const rows = job.subjobCounts
  if (rows && job.status === 'RUNNING') return `${rows.COMPLETED + rows.FAILED}/${rows.QUEUED + rows.RUNNING + rows.COMPLETED + rows.FAILED}`
  if (job.status === 'RUNNING' && job.progress) return `${Math.floor(100 * job.progress.fraction)} %`
  return stateOf(job).glyph
}

/** Why a queued job waits, and where it stands. */
export function waiting(job: Job): string {
  const q = job.queue
  const parts: string[] = []
  if (q?.position) parts.push(`${q.position}${q.of ? ` of ${q.of}` : ''} in the queue`)
  if (job.statusReason) parts.push(job.statusReason)
  return parts.join(' · ')
}

/** How the queue stands, in a line. */
export function queueLine(counts: Pick<Counts, 'QUEUED' | 'RUNNING'> | undefined): string {
  if (!counts) return ''
  const { RUNNING: running, QUEUED: queued } = counts
  if (running + queued === 0) return 'The queue is empty; new jobs start immediately.'
  return `${count(running, 'job')} running, ${queued === 0 ? 'none waiting' : `${queued.toLocaleString('en')} waiting`}.`
}

/** Where a job runs or has run: on a cluster, as which of its jobs, once that is known. */
export function runsOn({ executor, slurm }: Pick<Job, 'executor' | 'slurm'>): string {
  if (!slurm) return executor === 'slurm' ? 'on the cluster' : 'on this server'
  return `Slurm job ${slurm.job}${slurm.node ? ` on ${slurm.node}` : ''}${slurm.partition ? `, partition ${slurm.partition}` : ''}`
}
