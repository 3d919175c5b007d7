// A stream of events that connects again by itself, and says how it stands.
import { apiURL, type Query } from './address'

export type Standing = 'connecting' | 'live' | 'lost'

const events = ['job', 'metrics', 'progress', 'deleted', 'log', 'reset', 'end'] as const
type EventName = (typeof events)[number]

// Waits between attempts, in milliseconds.
const firstWait = 1_000
const longestWait = 30_000

export class Live {
  standing = $state.raw<Standing>('connecting')
  /** When it connects again, in milliseconds since 1970. */
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

  /** Ends it for good. */
  close() {
    this.closed = true
    clearTimeout(this.timer)
    this.source?.close()
  }

  /** Connects at once if it waits. */
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
    // The browser's own attempts never end and cannot be seen, so we make them.
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
