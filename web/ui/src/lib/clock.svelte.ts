// What the head of every page shows: the time, and how the page's stream stands.
import type { Live } from './live.svelte'

/** The time, once a second or as often as told, while somebody looks. */
class Clock {
  now = $state.raw(Date.now())
  constructor() {
    setInterval(() => {
      if (!document.hidden) this.now = Date.now()
    }, 1_000)
  }
}

export const clock = new Clock()

/** Where the page's stream stands, for the head of every page. */
class Shown {
  stream = $state.raw<Live | undefined>(undefined)
}

export const shown = new Shown()
