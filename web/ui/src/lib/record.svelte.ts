// The record of one job, kept up to date by events until it is finished.
import { segment } from './address'
import { ApiError, get, reason, type Job } from './api'
import { Live } from './live.svelte'

export const finished = (job: Pick<Job, 'status'>) => job.status === 'COMPLETED' || job.status === 'FAILED'

export class JobRecord {
  job = $state.raw<Job>()
  problem = $state('')
  missing = $state(false)
  deleted = $state(false)
  live = $state.raw<Live>()
  private closed = false
  private timer: ReturnType<typeof setInterval> | undefined

  constructor(readonly name: string) {}

  async load(): Promise<void> {
    try {
      this.job = await get<Job>(`jobs/${segment(this.name)}`)
      this.problem = ''
      this.missing = false
      if (!finished(this.job)) return this.follow()
      this.unfollow()
      this.watch()
    } catch (e) {
      this.missing = e instanceof ApiError && e.status === 404
      this.deleted = this.missing && this.job !== undefined
      this.problem = reason(e)
      if (this.missing) this.unfollow()
    }
  }

  close() {
    this.closed = true
    this.unfollow()
  }

  private unfollow() {
    this.live?.close()
    this.live = undefined
    clearInterval(this.timer)
    this.timer = undefined
  }

  /** A finished job has no events, but it can be deleted or queued again elsewhere. */
  private watch() {
    if (!this.closed) this.timer = setInterval(() => !document.hidden && void this.look(), 15_000)
  }

  private async look() {
    const job = await get<Job>(`jobs/${segment(this.name)}`).catch((e) => (e instanceof ApiError && e.status === 404 ? null : undefined))
    if (this.timer && job !== undefined && JSON.stringify(job) !== JSON.stringify(this.job)) void this.load()
  }

  private follow() {
    if (this.closed || this.live) return
    clearInterval(this.timer)
    this.live = new Live(`jobs/${segment(this.name)}/events`, {}, (event, data) => this.take(event, data as Partial<Job>))
    // No event reports, for example, the queue position.
    this.timer = setInterval(() => {
      if (!document.hidden && this.job && !finished(this.job)) void this.load()
    }, 5_000)
  }

  private take(event: string, data: Partial<Job>) {
    if (!this.job || data.jobId !== this.job.jobId) return
    if (event === 'progress') this.job = { ...this.job, ...data }
    else if (event === 'deleted') {
      this.deleted = true
      this.unfollow()
    } else void this.load()
  }
}
