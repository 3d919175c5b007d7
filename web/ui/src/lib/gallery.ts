// Images of many structures, drawn one after the other with one WebGL context, since a browser
// has few. The renderer is created for the first image and disposed of when idle.
import { download } from './download'
import type { Model } from './molecule'
import type { Plddt } from './plddt'

/** Renders images. */
export interface Artist {
  draw(model: Model, data: Uint8Array, plddt: Plddt | undefined): Promise<Blob>
  dispose(): void
}

interface Wish { model: Model; plddt: Plddt | undefined; signal: AbortSignal; done: (url: string) => void; failed: (e: unknown) => void }

const idle = 5_000 // milliseconds until an idle renderer is disposed of

export class Gallery {
  private readonly wishes: Wish[] = []
  private artist: Promise<Artist> | undefined
  private working = false
  private ended = false
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly hire: () => Promise<Artist>,
    private readonly fetch: (url: string, signal: AbortSignal) => Promise<Uint8Array> = download,
  ) {}

  /** Resolves with the URL of an image, which the caller must revoke. An aborted image is not drawn. */
  draw(model: Model, plddt: Plddt | undefined, signal: AbortSignal): Promise<string> {
    return new Promise((done, failed) => {
      this.wishes.push({ model, plddt, signal, done, failed })
      void this.work()
    })
  }

  private async work() {
    if (this.working) return
    this.working = true
    clearTimeout(this.timer)
    for (let wish = this.wishes.shift(); wish && !this.ended; wish = this.wishes.shift()) await this.fulfil(wish)
    this.working = false
    if (!this.ended) this.timer = setTimeout(() => this.dismiss(), idle)
  }

  private async fulfil(w: Wish) {
    try {
      w.signal.throwIfAborted()
      const data = await this.fetch(w.model.url, w.signal)
      this.artist ??= this.hire()
      const artist = await this.artist
      w.signal.throwIfAborted()
      const blob = await artist.draw(w.model, data, w.plddt)
      w.signal.throwIfAborted()
      w.done(URL.createObjectURL(blob))
    } catch (e) {
      if (!w.signal.aborted) this.dismiss() // a lost context does not recover
      w.failed(e)
    }
  }

  private dismiss() {
    const artist = this.artist
    this.artist = undefined
    void artist?.then((a) => a.dispose(), () => {})
  }

  close() {
    this.ended = true
    clearTimeout(this.timer)
    this.wishes.length = 0
    this.dismiss()
  }
}

/** A renderer that uses Mol* on a canvas off screen. */
export async function molstar(width: number, height: number): Promise<Artist> {
  const mol = await import('./mol')
  const host = document.createElement('div')
  Object.assign(host.style, { position: 'fixed', left: '-10000px', top: '0', width: `${width}px`, height: `${height}px`, pointerEvents: 'none' })
  host.ariaHidden = 'true'
  const canvas = document.createElement('canvas')
  host.append(canvas)
  document.body.append(host)
  try {
    const scene = await mol.Scene.open(canvas, host, () => {})
    return {
      async draw(model, data, plddt) {
        scene.clear()
        await scene.add(model.name, await mol.readModel(data, model.format), 0, plddt)
        await scene.show(scene.coarse ? 'putty' : 'cartoon', plddt ? 'plddt' : scene.hasPolymer ? 'chain' : 'element')
        await scene.drawn()
        scene.orient()
        return scene.picture()
      },
      dispose() {
        scene.dispose()
        host.remove()
      },
    }
  } catch (e) {
    host.remove()
    throw e
  }
}
