// Reloading content when an unreachable server is back.
import { apiURL } from './address'

const firstWait = 2_000 // milliseconds
const longestWait = 15_000

const answers = () => fetch(apiURL('healthz'), { cache: 'no-store' }).then(() => true, () => false)

/**
 * Calls back when an unreachable server responds again, and repeatedly after that until stopped,
 * because a retry can find the server unreachable again. A server that responds at once was not
 * unreachable, unless `away` says that it was. Returns a function that stops it.
 */
export function whenBack(call: () => unknown, away = false): () => void {
  let timer: ReturnType<typeof setTimeout>
  let wait = firstWait
  let ended = false
  async function look() {
    const there = await answers()
    if (ended || (there && !away)) return
    if (there) await call() // one at a time
    if (ended) return
    away = true
    timer = setTimeout(look, wait)
    wait = Math.min(1.5 * wait, longestWait)
  }
  void look()
  return () => {
    ended = true
    clearTimeout(timer)
  }
}
