// A page of jobs, kept up to date by events.
import { request, reason, aborted, type Job, type JobList, type Counts } from './api'
import type { Query } from './address'
import type { Live } from './live.svelte'

export const pageSize = 50

/** The filters of the list, as in the URL. */
export interface Filters {
  mine: boolean
  search: string
  status: string[]
  algorithm: string
  tag: string[]
  batch: string
  by: string
  startKey: string
}

export function filtersOf(q: URLSearchParams): Filters {
  return {
    mine: q.get('whose') === 'mine',
    search: q.get('search') ?? '',
    status: q.getAll('status'),
    algorithm: q.get('algorithm') ?? '',
    tag: q.getAll('tag'),
    batch: q.get('batch') ?? '',
    by: q.get('by') ?? '',
    startKey: q.get('startKey') ?? '',
  }
}

/** The filters as an API query. */
export function queryOf(f: Filters): Query {
  return { organization: !f.mine && !f.by, jobEmail: f.by, batch: f.batch, search: f.search, status: f.status, algorithm: f.algorithm, tag: f.tag }
}

/** The API query of a page. */
export const pageOf = (f: Filters): Query => ({ ...queryOf(f), startKey: f.startKey, limit: pageSize, count: true, statuses: true })

export class Jobs {
  jobs = $state.raw<Job[]>([])
  count = $state.raw<number | string | undefined>(undefined)
  statuses = $state.raw<Counts | undefined>(undefined)
  startKey = $state.raw<string | undefined>(undefined)
  loaded = $state.raw(false)
  busy = $state.raw(false)
  problem = $state.raw('')
  /** Jobs submitted since, not shown yet so that rows do not jump. */
  fresh = $state.raw<Job[]>([])
  live = $state.raw<Live | undefined>(undefined)
  #abort: AbortController | undefined
  #stop: (() => void) | undefined

  /** hold reports whether rows must stay in place. */
  constructor(
    private readonly filters: Filters,
    private readonly hold: () => boolean,
  ) {}

  async load(): Promise<void> {
    this.#abort?.abort()
    const abort = (this.#abort = new AbortController())
    this.busy = true
    try {
      const answer = await request('GET', 'jobs', { query: pageOf(this.filters), signal: abort.signal })
      const list = (await answer.json()) as JobList
      this.jobs = list.jobs
      this.told(list)
      this.fresh = []
      this.loaded = true
      this.problem = ''
      void this.#follow(answer.headers.get('X-Event-ID') ?? '', abort.signal)
    } catch (e) {
      if (!aborted(e)) this.problem = reason(e)
    } finally {
      if (this.#abort === abort) this.busy = false
    }
  }

  close() {
    this.#abort?.abort()
    this.#stop?.()
  }

  /** Takes everything of a page except its jobs. */
  told(list: JobList) {
    this.count = list.count
    this.statuses = list.statuses
    this.startKey = list.startKey
  }

  /** Shows the jobs submitted since. */
  showFresh() {
    this.jobs = [...this.fresh, ...this.jobs].slice(0, pageSize)
    this.fresh = []
  }

  async #follow(lastID: string, signal: AbortSignal) {
    const { follow } = await import('./following')
    if (signal.aborted) return
    this.#stop?.()
    this.#stop = follow(this, this.filters, this.hold, lastID, signal)
  }
}
