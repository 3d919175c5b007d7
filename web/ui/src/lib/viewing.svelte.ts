// The state of a viewer: loading, display and playback. Mol* is loaded with the first viewer.
import { breathe } from './breathe'
import { download } from './download'
import { bytes, count } from './format'
import { Latest } from './latest'
import { modelFormat, type Box, type Colouring, type Focus, type Ligand, type Look, type Model, type Motion } from './molecule'
import type { Scene } from './mol'
import type { Plddt } from './plddt'

export const muchData = 50 * 1024 * 1024 // bytes of a trajectory before the viewer asks
const mostModel = 150 * 1024 * 1024 // maximum bytes of a structure
const leastTime = 40 // minimum milliseconds per frame
export const cancelled = (e: unknown) => e instanceof DOMException && e.name === 'AbortError'

export interface Shown { models: readonly Model[]; trajectory: Motion | undefined; plddt: Plddt | undefined; superpose: boolean; docked: boolean; frame: number }

export class Viewing {
  words = $state.raw('')
  problem = $state.raw('')
  error = $state.raw<unknown>(undefined) // why it could not be opened
  ready = $state.raw(false)
  frames = $state.raw(0)
  frame = $state.raw(0)
  playing = $state.raw(false)
  look = $state.raw<Look>('cartoon')
  colouring = $state.raw<Colouring>('chain')
  hasPolymer = $state.raw(false)
  ligands = $state.raw<Ligand[]>([])
  ligand = $state.raw('')
  contacts = $state.raw<string[]>([])
  under = $state.raw('')
  over = $state.raw<Focus | undefined>(undefined)
  frugal = $state.raw(false)
  fine = $state.raw(false)
  scene = $state.raw<Scene | undefined>(undefined)
  private readonly abort = new AbortController()
  private turn: Promise<unknown> = Promise.resolve()
  private readonly moves = new Latest<number>((frame) => this.inTurn(() => this.move(frame)))
  private readonly boxes = new Latest<Box | undefined>((box) => this.inTurn(async () => this.scene?.setBox(box)))

  /** Loads and draws. Errors are stored in problem. */
  async open(canvas: HTMLCanvasElement, host: HTMLElement, shown: Shown) {
    try {
      await this.load(canvas, host, shown)
    } catch (e) {
      if (this.abort.signal.aborted || cancelled(e)) return
      this.problem = e instanceof Error ? e.message : String(e)
      this.error = e
      this.words = ''
      this.end()
    }
  }

  private async load(canvas: HTMLCanvasElement, host: HTMLElement, shown: Shown) {
    this.words = 'Loading viewer'
    const files = this.fetchAll(shown)
    files.catch(() => {}) // awaited below, after the viewer is loaded
    const mol = await import('./mol')
    if (this.abort.signal.aborted) return
    canvas.style.display = 'none' // until it is drawn: the page would wait for it
    const scene = await mol.Scene.open(canvas, host, (text, residue) => {
      this.under = text
      this.over = residue
    })
    if (this.abort.signal.aborted) return scene.dispose()
    this.scene = scene
    this.frugal = scene.frugal
    for (const { name, data, model } of (await files).models) {
      this.words = `Reading ${name}`
      await breathe()
      const trajectory = await mol.readModel(data, model.format)
      if (this.abort.signal.aborted) return
      await scene.add(name, trajectory, shown.frame, shown.plddt)
    }
    if (shown.trajectory) {
      this.words = 'Reading trajectory'
      await breathe()
      const { motion, topology } = await files
      const still = topology && mol.needsTopology(shown.trajectory.format) ? await mol.readModel(topology, modelFormat(path(shown.trajectory.topology)) ?? 'pdb') : undefined
      const trajectory = await mol.readMotion(motion!, shown.trajectory.format, still)
      if (this.abort.signal.aborted) return
      await scene.add('Trajectory', trajectory, shown.frame)
    }
    this.words = `Drawing ${count(scene.atoms, 'atom')}`
    await breathe()
    if (shown.superpose) scene.superpose()
    await this.first(scene, canvas, shown)
  }

  private async first(scene: Scene, canvas: HTMLCanvasElement, shown: Shown) {
    this.frames = scene.frames
    this.frame = Math.max(0, Math.min(shown.frame, scene.frames - 1))
    this.hasPolymer = scene.hasPolymer
    this.look = scene.coarse ? 'putty' : 'cartoon'
    this.colouring = shown.models.length > 1 ? 'model' : shown.plddt ? 'plddt' : scene.hasPolymer ? 'chain' : 'element'
    await scene.show(this.look, this.colouring)
    if (this.abort.signal.aborted) return
    this.ligands = scene.ligands()
    scene.reset()
    const docked = shown.docked && this.ligands.findLast((l) => l.entry === shown.models.length - 1)
    if (docked) {
      this.ligand = docked.id
      this.contacts = await scene.showLigand(docked.id)
    }
    await scene.drawn()
    if (this.abort.signal.aborted) return
    canvas.style.display = ''
    this.words = ''
    this.ready = true
  }

  private async fetchAll(shown: Shown) {
    const { signal } = this.abort
    const models = await Promise.all(shown.models.map(async (model) => ({ name: model.name, model, data: await download(model.url, signal, () => {}, mostModel) })))
    if (!shown.trajectory) return { models }
    const t = shown.trajectory
    const tell = (n: number) => (this.words = `Loading trajectory: ${bytes(n)} of ${bytes(t.size)}`)
    const [topology, motion] = await Promise.all([t.topology ? download(t.topology, signal) : undefined, download(t.url, signal, tell)])
    return { models, topology, motion }
  }

  private inTurn(fn: () => Promise<void>): Promise<void> {
    const next = this.turn.then(fn)
    this.turn = next.catch(() => {})
    return next
  }

  private async move(frame: number) {
    await this.scene?.setFrame(frame)
    if (this.ligand !== '' && !this.playing) this.contacts = (await this.scene?.showLigand(this.ligand, false)) ?? []
  }

  async go(frame: number) {
    if (!this.ready || this.frames === 0) return
    this.frame = Math.max(0, Math.min(this.frames - 1, Math.round(frame)))
    await this.moves.set(this.frame)
  }

  async play() {
    if (this.playing || this.frames < 2 || !this.ready) return
    this.playing = true
    while (this.playing && this.scene) {
      const start = performance.now()
      await this.go((this.frame + 1) % this.frames)
      await new Promise(requestAnimationFrame) // the scene draws in this frame
      await new Promise((r) => setTimeout(r, Math.max(0, leastTime - (performance.now() - start))))
    }
  }

  pause() {
    this.playing = false
  }

  show(look: Look, colouring: Colouring) {
    this.look = look
    this.colouring = colouring
    return this.guarded(() => this.inTurn(async () => this.scene?.show(look, colouring)))
  }

  choose(ligand: string) {
    this.ligand = ligand
    return this.guarded(() => this.inTurn(async () => {
      this.contacts = (await this.scene?.showLigand(ligand)) ?? []
      if (ligand === '') this.scene?.reset()
    }))
  }

  setBox = (box: Box | undefined) => this.guarded(() => this.boxes.set(box))

  mark = (wanted: readonly Focus[]) => this.scene?.mark(wanted)

  setFine(on: boolean) {
    this.fine = on
    this.scene?.setFine(on)
  }

  private async guarded(fn: () => Promise<void>) {
    try {
      await fn()
    } catch (e) {
      this.problem = e instanceof Error ? e.message : String(e)
    }
  }

  private end() {
    this.playing = false
    this.ready = false
    this.scene?.dispose()
    this.scene = undefined
  }

  dispose() {
    this.abort.abort()
    this.end()
  }
}

const path = (url: string) => new URL(url, location.href).pathname
