// Long work in steps.

/** Lets the browser draw and handle input between two steps of long work. */
export const breathe = (ms = 0) => new Promise<void>((resolve) => setTimeout(resolve, ms))

const slice = 30 // milliseconds of work between two pauses

/** Calls step with 0 to count − 1, pausing in between to keep the page responsive. */
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
