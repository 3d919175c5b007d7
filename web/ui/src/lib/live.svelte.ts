// A stream of events that reconnects automatically and reports its status.
import { apiURL, type Query } from './address'

export type Standing = 'connecting' | 'live' | 'lost'

const events = ['job', 'metrics', 'progress', 'deleted', 'log', 'reset', 'end'] as const
type EventName = (typeof events)[number]

// Delays between attempts, in milliseconds.
const firstWait = 1_000
const longestWait = 30_000

export class Live {
  standing = $state.raw<Standing>('connecting')
  /** The time of the next attempt, in milliseconds since 1970. */
  retryAt = $state.raw(0)
  private source: EventSource | undefined
  private timer: ReturnType<typeof setTimeout> | undefined
  private wait = firstWait
  private lastID = ''
  private closed = false

  constructor(
    private readonly path: string,
    private readonly query: Query,
    private readonly tell: (event: EventName, data: unknown) => void,
    lastID = '',
  ) {
    this.lastID = lastID
    this.connect()
  }

  /** Closes the stream permanently. */
  close() {
    this.closed = true
    clearTimeout(this.timer)
    this.source?.close()
  }

  /** Reconnects now if the connection is lost. */
  retry() {
    if (this.standing !== 'lost' || this.closed) return
    clearTimeout(this.timer)
    this.connect()
  }

  private connect() {
    this.standing = 'connecting'
    const source = new EventSource(apiURL(this.path, { ...this.query, lastEventId: this.lastID || undefined }))
    this.source = source
    source.onopen = () => {
      this.standing = 'live'
      this.wait = firstWait
    }
    // The browser's own reconnecting never stops and is invisible, so we do it ourselves.
    source.onerror = () => this.lose()
    for (const name of events) {
      source.addEventListener(name, (e) => {
        const message = e as MessageEvent<string>
        if (message.lastEventId) this.lastID = message.lastEventId
        this.tell(name, JSON.parse(message.data))
        if (name === 'end') this.close()
      })
    }
  }

  private lose() {
    this.source?.close()
    if (this.closed) return
    this.standing = 'lost'
    this.retryAt = Date.now() + this.wait
    this.timer = setTimeout(() => this.connect(), this.wait)
    this.wait = Math.min(2 * this.wait, longestWait)
  }
}
