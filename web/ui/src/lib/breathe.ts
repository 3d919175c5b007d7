// Long work in steps.

/** Lets the browser draw and answer, between two steps of long work. */
export const breathe = (ms = 0) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const slice = 30 // milliseconds of work between two breaths

/** Calls step for each of so many, and breathes in between, so that the page stays alive. */
export async function inSlices(count: number, step: (i: number) => void, signal?: AbortSignal): Promise<void> {
  let end = performance.now() + slice
  for (let i = 0; i < count; i++) {
    step(i)
    if (performance.now() < end) continue
    await breathe()
    signal?.throwIfAborted()
    end = performance.now() + slice
  }
}
