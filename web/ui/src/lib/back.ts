// What could not be loaded because the server is away is loaded when it is back.
import { apiURL } from './address'

const firstWait = 2_000 // milliseconds
const longestWait = 15_000

const answers = () => fetch(apiURL('healthz'), { cache: 'no-store' }).then(() => true, () => false)

/**
 * Calls back when the server, which was away, answers again, and then now and then until it is
 * ended, since a repetition may meet the server away again. A server that answers at once was not
 * away, unless `away` says that it is known to have been.
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
