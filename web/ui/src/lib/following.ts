// Keeps a page of jobs up to date, applying events in batches.
import { get, type Job, type JobEvent, type JobList } from './api'
import { pageOf, pageSize, queryOf, type Filters, type Jobs } from './jobs.svelte'
import { Live } from './live.svelte'

const pace = 250 // milliseconds between two updates of the page
const mostWaiting = 2_000 // events; with more, the page is reloaded
const mostFresh = 1_000 // new jobs waiting to be shown

export interface Told { event: string; data: JobEvent & { progress?: Job['progress']; metrics?: Job['metrics'] } }

/** The jobs shown, and new jobs waiting to be shown. */
export interface Page { jobs: Job[]; fresh: Job[] }

/** Applies events to a page. With hold, rows stay in place and new jobs wait. */
export function after(page: Page, events: readonly Told[], filters: Filters, hold: boolean): Page {
  const jobs = new Map(page.jobs.map((j) => [j.jobId, j]))
  const fresh = new Map(page.fresh.map((j) => [j.jobId, j]))
  const added = new Map<string, Job>()
  for (const { event, data } of events) {
    const id = data.jobId
    const home = [jobs, fresh, added].find((m) => m.has(id))
    if (event === 'deleted') home?.delete(id)
    else if (home) home.set(id, merged(home.get(id)!, data))
    else if (event === 'job' && isNew(data, page.jobs[0], filters)) added.set(id, data as Job)
  }
  const newest = [...added.values()].reverse()
  const waiting = [...fresh.values()]
  if (hold) return { jobs: [...jobs.values()], fresh: [...newest, ...waiting].slice(0, mostFresh) }
  return { jobs: [...newest, ...jobs.values()].slice(0, Math.max(pageSize, jobs.size)), fresh: waiting }
}

function isNew(data: JobEvent, newest: Job | undefined, f: Filters): boolean {
  if (data.attempts !== 0 || (data.batch ?? '') !== f.batch || f.startKey) return false
  if (newest && data.jobId < newest.jobId) return false // belongs to another page
  return f.status.length === 0 || f.status.includes(data.status)
}

/** Merges an event into a record. */
function merged(old: Job, told: Partial<Job> & { jobId: string }): Job {
  const job = { ...old, ...told }
  if (told.status && told.status !== old.status) {
    if (!told.queue) delete job.queue
    if (!told.statusReason) delete job.statusReason
    if (told.status !== 'RUNNING') {
      delete job.progress
      delete job.etaSeconds
    }
  }
  return job
}

/** Follows the events after lastID, and returns a function that stops it. */
export function follow(list: Jobs, filters: Filters, hold: () => boolean, lastID: string, signal: AbortSignal): () => void {
  let waiting: Told[] = []
  let timer: ReturnType<typeof setTimeout> | undefined
  let last = 0
  let stale = false
  let quiet = 0

  function flush() {
    timer = undefined
    last = performance.now()
    const events = waiting
    waiting = []
    if (events.length > mostWaiting) return void list.load()
    const page = after(list, events, filters, hold())
    list.jobs = page.jobs
    list.fresh = page.fresh
  }

  const live = new Live('events', queryOf(filters), (event, data) => {
    if (event === 'reset') return void list.load()
    if (event === 'end') return
    stale ||= event === 'job' || event === 'deleted'
    if (waiting.length <= mostWaiting) waiting.push({ event, data: data as Told['data'] })
    timer ??= setTimeout(flush, Math.max(0, last + pace - performance.now()))
  }, lastID)
  list.live = live

  // Events do not report queue positions, counts, and jobs that no longer match the filter.
  const refresher = setInterval(() => {
    const due = stale || (++quiet >= 5 && list.jobs.some((j) => j.status === 'QUEUED' || j.status === 'RUNNING'))
    if (document.hidden || !due) return
    quiet = 0
    stale = false
    void refresh(list, filters, signal)
  }, 2_000)

  return () => {
    live.close()
    clearInterval(refresher)
    clearTimeout(timer)
  }
}

/** Reloads the same page; rows stay in place. */
async function refresh(list: Jobs, filters: Filters, signal: AbortSignal) {
  try {
    const read = await get<JobList>('jobs', pageOf(filters), signal)
    const now = new Map(read.jobs.map((j) => [j.jobId, j]))
    list.jobs = list.jobs.map((j) => now.get(j.jobId) ?? j)
    list.told(read)
  } catch {
    // The stream shows that the server is not responding.
  }
}
