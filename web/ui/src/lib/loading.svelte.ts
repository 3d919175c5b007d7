// A value that a page loads. The last good value stays during reloads and after failures.
import { aborted, reason } from './api'

export class Loading<T> {
  value = $state.raw<T | undefined>(undefined)
  problem = $state.raw('')
  error = $state.raw<unknown>(undefined)
  busy = $state.raw(false)
  private abort: AbortController | undefined

  constructor(private readonly load: (signal: AbortSignal) => Promise<T>) {}

  /** Reloads, aborting an earlier load that is still in progress. */
  async run(): Promise<void> {
    this.abort?.abort()
    const abort = (this.abort = new AbortController())
    this.busy = true
    try {
      const value = await this.load(abort.signal)
      if (abort.signal.aborted) return
      this.value = value
      this.problem = ''
      this.error = undefined
    } catch (e) {
      if (aborted(e) || abort.signal.aborted) return
      this.error = e
      this.problem = reason(e)
    } finally {
      if (!abort.signal.aborted) this.busy = false
    }
  }

  stop() {
    this.abort?.abort()
  }
}

/** Calls fn every `period` ms while the page is visible, less often after failures. Returns a function that stops it. */
export function poll(period: number, fn: () => Promise<boolean | void>): () => void {
  let timer: ReturnType<typeof setTimeout>
  let ended = false
  let wait = period
  const next = () => {
    if (!ended) timer = setTimeout(turn, wait)
  }
  const turn = async () => {
    if (!document.hidden) {
      const ok = await fn().catch(() => false)
      wait = ok === false ? Math.min(2 * wait, 10 * period) : period
    }
    next()
  }
  next()
  return () => {
    ended = true
    clearTimeout(timer)
  }
}
