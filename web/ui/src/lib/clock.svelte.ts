// Shared state for the head of every page: the time, and the event stream of the page.
import type { Live } from './live.svelte'

/** The time, updated once a second while the page is visible. */
class Clock {
  now = $state.raw(Date.now())
  constructor() {
    setInterval(() => {
      if (!document.hidden) this.now = Date.now()
    }, 1_000)
  }
}

export const clock = new Clock()

/** The event stream of the current page. */
class Shown {
  stream = $state.raw<Live | undefined>(undefined)
}

export const shown = new Shown()
