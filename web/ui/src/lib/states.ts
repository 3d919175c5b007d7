// How states are shown: a glyph, a word and a colour.
import type { Job } from './api'

export interface Shown { glyph: string; word: string; colour: string }

const states: Record<string, Shown> = {
  QUEUED: { glyph: '○', word: 'Queued', colour: 'var(--st-queued)' },
  RUNNING: { glyph: '◐', word: 'Running', colour: 'var(--st-running)' },
  COMPLETED: { glyph: '✓', word: 'Completed', colour: 'var(--st-completed)' },
  FAILED: { glyph: '✕', word: 'Failed', colour: 'var(--st-failed)' },
  CANCELLED: { glyph: '–', word: 'Cancelled', colour: 'var(--st-warn)' },
}

/** The state of a job; one that somebody stopped is told from one that failed. */
export function stateOf(job: Pick<Job, 'status'> & { failure?: Job['failure']; failureCode?: string }): Shown {
  const code = job.failure?.code ?? job.failureCode
  const name = job.status === 'FAILED' && code === 'STOPPED' ? 'CANCELLED' : job.status
  return states[name] ?? { glyph: '?', word: String(name), colour: 'var(--muted)' }
}

/** Why a queued job waits, and where it stands. */
export function waiting(job: Job): string {
  const q = job.queue
  const parts: string[] = []
  if (q?.position) parts.push(`${q.position}${q.of ? ` of ${q.of}` : ''} in the queue`)
  if (job.statusReason) parts.push(job.statusReason)
  return parts.join(' · ')
}
