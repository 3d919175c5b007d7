// What could not be loaded because the server is away is loaded when it is back.
import { apiURL } from './address'

const firstWait = 2_000 // milliseconds
const longestWait = 15_000

const answers = () => fetch(apiURL('healthz'), { cache: 'no-store' }).then(() => true, () => false)

/** Calls back when the server, which was away, answers again; never if it was not away. */
export function whenBack(call: () => unknown): () => void {
  let timer: ReturnType<typeof setTimeout>
  let wait = firstWait
  let ended = false
  async function look(away: boolean) {
    const there = await answers()
    if (ended) return
    if (there) return away && call()
    timer = setTimeout(() => look(true), wait)
    wait = Math.min(1.5 * wait, longestWait)
  }
  void look(false)
  return () => {
    ended = true
    clearTimeout(timer)
  }
}
