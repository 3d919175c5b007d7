// The scene of the viewer: Mol*'s canvas, parsers and representations, without its plugin, whose
// state tree and panels would double the download.
import { Canvas3D, Canvas3DContext } from 'molstar/lib/mol-canvas3d/canvas3d.js'
import type { WebGLContext } from 'molstar/lib/mol-gl/webgl/context.js'
import { resizeCanvas } from 'molstar/lib/mol-canvas3d/util.js'
import { Sphere3D } from 'molstar/lib/mol-math/geometry.js'
import { Vec3 } from 'molstar/lib/mol-math/linear-algebra.js'
import type { Loci } from 'molstar/lib/mol-model/loci.js'
import { Bond, Model, Structure, StructureElement, StructureProperties, type Trajectory } from 'molstar/lib/mol-model/structure.js'
import { alignAndSuperpose } from 'molstar/lib/mol-model/structure/structure/util/superposition.js'
import type { Representation, RepresentationContext } from 'molstar/lib/mol-repr/representation.js'
import { SyncRuntimeContext } from 'molstar/lib/mol-task/execution/synchronous.js'
import { AssetManager } from 'molstar/lib/mol-util/assets.js'
import { Color } from 'molstar/lib/mol-util/color/index.js'
import { MarkerAction } from 'molstar/lib/mol-util/marker-action.js'
import { breathe } from '../breathe'
import type { Box, Colouring, Focus, Ligand, Look, Residues } from '../molecule'
import { boxRepresentation } from './box'
import type { Plddt } from '../plddt'
import { bFactor, plddtOf, type Painted } from './colours'
import { bFactors, Drawn, partsOf, qualityOf, type Parts } from './drawing'
import { around, findLigands, ligandIn, positions, residueName, residuesOf, type FoundLigand } from './ligands'

/** A structure or trajectory in the scene. */
interface Entry { name: string; trajectory: Trajectory; structure: Structure; parts: Parts; drawn: Drawn[]; painted: Painted; frame: number }

const slow = /swiftshader|llvmpipe|softpipe|basic render/i
const light = { multiSample: { mode: 'off' }, postprocessing: { enabled: false }, marking: { enabled: false }, hiZ: { enabled: false } }
const fine = { multiSample: { mode: 'temporal' }, postprocessing: { enabled: true }, marking: { enabled: true }, hiZ: { enabled: true } }

const edge = 3 // ångströms around the structure that fills an image

let computed: boolean | undefined

/** Whether WebGL is rendered in software, without a graphics card. */
const isSlow = (): boolean => (computed ??= ask())

function ask(): boolean {
  const gl = document.createElement('canvas').getContext('webgl2')
  if (!gl) throw new Error('This browser does not support WebGL 2, or it is disabled.')
  const info = gl.getExtension('WEBGL_debug_renderer_info')
  const name = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER))
  gl.getExtension('WEBGL_lose_context')?.loseContext()
  return slow.test(name)
}

const poll = 10 // milliseconds

/** Resolves when WebGL has finished its work. Reading results earlier would block the page. */
async function settled({ gl }: WebGLContext) {
  if (!('fenceSync' in gl)) return
  const fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0)
  gl.flush()
  while (fence && !gl.isContextLost() && gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) await breathe(poll)
  gl.deleteSync(fence)
}

const mostAtoms = 1_000_000
const mostComputed = 300_000 // atoms, without a graphics card

/** Called with the atom and residue under the pointer. */
type Hover = (text: string, residue?: Focus) => void

export class Scene {
  private readonly canvas3d: Canvas3D
  private readonly ctx: RepresentationContext
  private readonly custom: { runtime: typeof SyncRuntimeContext; assetManager: AssetManager }
  private readonly entries: Entry[] = []
  private readonly sight: ResizeObserver
  private readonly subscriptions: { unsubscribe: () => void }[] = []
  private around: Drawn[] = []
  private found: FoundLigand[] = []
  private box: ReturnType<typeof boxRepresentation> | undefined
  private look: Look | undefined
  private colouring: Colouring = 'chain'
  private ended = false

  /** Sets up drawing on a canvas, in steps that keep the page responsive. */
  static async open(canvas: HTMLCanvasElement, host: HTMLElement, onhover: Hover): Promise<Scene> {
    await breathe()
    const frugal = isSlow()
    await breathe()
    const assets = new AssetManager()
    const context = Canvas3DContext.fromCanvas(canvas, assets, { failIfMajorPerformanceCaveat: false, antialias: !frugal, preserveDrawingBuffer: false }, frugal ? { pickScale: 0.1, transparency: 'blended' } : {})
    await settled(context.webgl)
    return new Scene(canvas, host, onhover, frugal, context, assets)
  }

  private constructor(private readonly canvas: HTMLCanvasElement, host: HTMLElement, onhover: Hover, readonly frugal: boolean, private readonly context: Canvas3DContext, private readonly assets: AssetManager) {
    this.custom = { runtime: SyncRuntimeContext, assetManager: assets }
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches
    this.canvas3d = Canvas3D.create(this.context)
    this.canvas3d.setProps({ renderer: { backgroundColor: Color(0xffffff) }, cameraResetDurationMs: still ? 0 : 250, camera: { helper: { axes: { name: 'off', params: {} } } } })
    if (this.frugal) this.canvas3d.setProps(light)
    this.ctx = { webgl: this.canvas3d.webgl } as RepresentationContext
    this.sight = new ResizeObserver(() => this.resize(host))
    this.sight.observe(host)
    this.resize(host)
    this.subscriptions.push(this.canvas3d.interaction.hover.subscribe(({ current }) => this.hover(current, onhover)))
    this.canvas3d.animate()
  }

  private resize(host: HTMLElement) {
    if (this.ended || host.clientWidth === 0) return
    resizeCanvas(this.canvas, host, this.context.pixelScale)
    this.context.syncPixelScale()
    this.canvas3d.requestResize()
  }

  /** Turns shadows and antialiasing on or off; off is faster. */
  setFine(on: boolean) {
    this.canvas3d.setProps(on ? fine : light)
  }

  get frames() {
    return Math.max(0, ...this.entries.map((e) => e.trajectory.frameCount))
  }

  get coarse() {
    return this.entries.length > 0 && this.entries.every((e) => Model.isCoarseGrained(e.structure.model))
  }

  get hasPolymer() {
    return this.entries.some((e) => e.parts.polymer)
  }

  /** The number of atoms drawn. */
  get atoms() {
    return this.entries.reduce((sum, e) => sum + e.structure.elementCount, 0)
  }

  /** Adds a structure or trajectory without drawing it. */
  async add(name: string, trajectory: Trajectory, frame = 0, plddt?: Plddt) {
    const most = this.frugal ? mostComputed : mostAtoms
    const atoms = trajectory.representative.atomicHierarchy.atoms._rowCount
    if (atoms > most) throw new Error(`it has ${atoms.toLocaleString('en')} atoms, but this ${this.frugal ? 'browser, which draws without a graphics card,' : 'page'} can draw at most ${most.toLocaleString('en')}.`)
    await breathe()
    const structure = await this.structureOf(trajectory, frame)
    const chains = this.entries[0]?.painted.chains ?? new Map<string, number>()
    for (const unit of structure.units) {
      const l = StructureElement.Location.create(structure, unit, unit.elements[0])
      const chain = StructureProperties.chain.auth_asym_id(l)
      if (!chains.has(chain)) chains.set(chain, chains.size)
    }
    const [low, high] = bFactors(structure)
    await breathe()
    this.entries.push({ name, trajectory, structure, parts: partsOf(structure), drawn: [], painted: { model: this.entries.length, chains, low, high, plddt }, frame })
  }

  private async structureOf(trajectory: Trajectory, frame: number): Promise<Structure> {
    const model = await trajectory.getFrameAtIndex(Math.min(frame, trajectory.frameCount - 1))
    return Structure.ofModel(model as Model)
  }

  /** Superposes each protein on the first one; entries without a polymer stay in place. */
  superpose() {
    const [first, ...others] = this.entries
    if (!first?.parts.polymer) return
    for (const entry of others) {
      if (!entry.parts.polymer) continue
      const pair = [first, entry].map((e) => chainTrace(e.parts.polymer!))
      if (pair.some((l) => l.elements.length === 0)) continue
      const fit = alignAndSuperpose(pair)[0]
      if (!fit) continue
      entry.structure = Structure.transform(entry.structure, fit.bTransform)
      entry.parts = partsOf(entry.structure)
    }
  }

  /** Redraws everything. */
  async show(look: Look, colouring: Colouring) {
    const painted = this.look === look
    this.look = look
    this.colouring = colouring
    if (painted) return this.repaint()
    for (const entry of this.entries) await this.build(entry)
  }

  private repaint() {
    for (const entry of this.entries) for (const d of entry.drawn) this.paint(entry, d)
    this.around.forEach((d) => d.paint('element', this.entries[0]!.painted, true))
    this.canvas3d.requestDraw()
  }

  private paint(entry: Entry, d: Drawn) {
    const several = this.entries.length > 1
    const ligand = d.structure === entry.parts.rest || d.kind === 'sticks'
    d.paint(ligand && this.colouring === 'chain' && !several && d.structure === entry.parts.rest ? 'element' : this.colouring, entry.painted, ligand && this.colouring !== 'plddt' && this.colouring !== 'bfactor')
    this.canvas3d.update(d.repr)
  }

  private async build(entry: Entry) {
    const old = entry.drawn
    const next: Drawn[] = []
    const quality = this.frugal ? qualityOf(this.atoms, this.frames > 1) : 'auto'
    if (entry.parts.polymer) next.push(new Drawn(this.ctx, this.look ?? 'cartoon', entry.parts.polymer, quality))
    if (entry.parts.rest) next.push(new Drawn(this.ctx, 'sticks', entry.parts.rest, quality))
    for (const d of next) {
      await breathe()
      this.paint(entry, d)
      await d.draw(this.ctx, this.custom)
      if (this.ended) return d.destroy()
    }
    entry.drawn = next
    old.forEach((d) => this.drop(d))
    next.forEach((d) => this.canvas3d.add(d.repr))
    this.canvas3d.requestDraw()
  }

  private drop(d: Drawn) {
    this.canvas3d.remove(d.repr)
    d.destroy()
  }

  /** Shows a frame of each trajectory; shorter ones show their last frame. */
  async setFrame(frame: number) {
    for (const entry of this.entries) await this.move(entry, Math.min(frame, entry.trajectory.frameCount - 1))
  }

  private async move(entry: Entry, frame: number) {
    if (entry.frame === frame || this.ended) return
    const model = (await entry.trajectory.getFrameAtIndex(frame)) as Model
    const before = entry.structure.boundary.sphere.center
    const same = model.atomicHierarchy === entry.structure.model.atomicHierarchy
    entry.frame = frame
    entry.structure = same ? entry.structure.remapModel(model) : Structure.ofModel(model)
    if (same) for (const d of entry.drawn) await d.move(model, this.custom)
    else entry.parts = partsOf(entry.structure)
    if (this.ended) return
    if (!same) return this.build(entry)
    entry.parts = followed(entry)
    if (entry.trajectory.frameCount === this.frames) this.follow(before, entry.structure.boundary.sphere.center)
  }

  /** Moves the camera with a drifting structure. */
  private follow(from: Vec3, to: Vec3) {
    const { camera } = this.canvas3d
    const shift = Vec3.sub(Vec3(), to, from)
    camera.setState({ position: Vec3.add(Vec3(), camera.state.position, shift), target: Vec3.add(Vec3(), camera.state.target, shift) }, 0)
    this.canvas3d.requestDraw()
  }

  ligands(): Ligand[] {
    this.found = findLigands(this.entries.map((e) => e.parts.rest), this.entries.map((e) => e.name))
    return this.found.map((l, i) => ({ id: String(i), label: l.label, entry: l.entry }))
  }

  /** Shows a ligand and the residues around it, and returns their names. */
  async showLigand(id: string, zoom = true): Promise<string[]> {
    this.around.forEach((d) => this.drop(d))
    this.around = []
    const ligand = this.found[Number(id)]
    const home = ligand && this.entries[ligand.entry]
    const loci = home && ligandIn(home.structure, ligand)
    if (id === '' || !loci) {
      this.canvas3d.requestDraw()
      return []
    }
    const names: string[] = []
    const points = positions(loci)
    for (const entry of this.entries) {
      const near = around(entry.structure, points, entry === home ? ligand : undefined)
      names.push(...near.names)
      if (near.loci.elements.length > 0) await this.drawAround(entry, near.loci)
    }
    await this.drawAround(home, loci)
    if (zoom) this.zoom(loci, 6)
    return names
  }

  private async drawAround(entry: Entry, loci: StructureElement.Loci) {
    const d = new Drawn(this.ctx, 'focus', StructureElement.Loci.toStructure(loci))
    d.paint(this.entries.length > 1 ? 'model' : 'element', entry.painted, true)
    await d.draw(this.ctx, this.custom)
    if (this.ended) return d.destroy()
    this.around.push(d)
    this.canvas3d.add(d.repr)
  }

  private zoom(loci: StructureElement.Loci, margin: number) {
    const sphere = StructureElement.Loci.getBoundingSphere(loci, Sphere3D())
    this.canvas3d.camera.focus(sphere.center, sphere.radius + margin, this.canvas3d.props.cameraResetDurationMs)
    this.canvas3d.requestDraw()
  }

  private residue(focus: Focus, entry: Entry): StructureElement.Loci {
    return StructureElement.Loci.fromSchema(entry.structure, { ...(focus.chain && { auth_asym_id: focus.chain }), auth_seq_id: focus.residue })
  }

  /** The residues of the first structure. */
  residues(): Residues {
    const first = this.entries[0]
    return first?.parts.polymer ? residuesOf(first.parts) : { residues: [], tokens: [] }
  }

  /** Marks residues, or none. */
  mark(wanted: readonly Focus[]) {
    this.canvas3d.mark({ loci: { kind: 'every-loci' } }, MarkerAction.Deselect)
    for (const focus of wanted) for (const e of this.entries) this.canvas3d.mark({ loci: this.residue(focus, e) }, MarkerAction.Select)
    this.canvas3d.requestDraw()
  }

  private hover(current: Representation.Loci, tell: Hover) {
    this.canvas3d.mark({ loci: { kind: 'every-loci' } }, MarkerAction.RemoveHighlight)
    const atom = atomOf(current.loci)
    if (!atom) return tell('')
    this.canvas3d.mark(current, MarkerAction.Highlight)
    const b = this.colouring === 'plddt' ? `, pLDDT ${plddtOf(atom, (this.entries.find((e) => e.structure.models.includes(atom.unit.model)) ?? this.entries[0]!).painted).toFixed(1)}` : this.colouring === 'bfactor' ? `, B-factor ${bFactor(atom).toFixed(1)}` : ''
    const residue = { chain: StructureProperties.chain.auth_asym_id(atom), residue: StructureProperties.residue.auth_seq_id(atom) }
    tell(`${residueName(atom.structure, atom.unit, atom.element)}, atom ${StructureProperties.atom.label_atom_id(atom)}${b}`, residue)
  }

  /** Shows a box, or none. */
  async setBox(box: Box | undefined) {
    if (this.ended) return
    if (!box) {
      if (this.box) this.canvas3d.remove(this.box)
      this.box = undefined
      return this.canvas3d.requestDraw()
    }
    const isNew = !this.box
    this.box ??= boxRepresentation()
    await this.box.createOrUpdate({ ignoreLight: true }, box).run()
    if (isNew && !this.ended) this.canvas3d.add(this.box)
    this.canvas3d.requestDraw()
  }

  /** A box around a ligand, or around everything. */
  boxAround(id: string, margin: number): Box | undefined {
    const ligand = this.found[Number(id)]
    const home = this.entries[ligand?.entry ?? 0]
    if (!home) return undefined
    const loci = (id !== '' && ligand && ligandIn(home.structure, ligand)) || Structure.toStructureElementLoci(home.structure)
    const p = positions(loci)
    const at = [0, 1, 2].map((axis) => p.reduce(([low, high], v, i) => (i % 3 === axis ? [Math.min(low!, v), Math.max(high!, v)] : [low!, high!]), [Infinity, -Infinity]))
    const round = (v: number) => Math.round(v * 10) / 10
    return { center: at.map(([l, h]) => round((l! + h!) / 2)) as Box['center'], size: at.map(([l, h]) => round(h! - l! + 2 * margin)) as Box['size'] }
  }

  /** Converts a pointer movement to a displacement in space, in ångströms. */
  inSpace(dx: number, dy: number): [number, number, number] {
    const { position, target, up } = this.canvas3d.camera.state
    const depth = Vec3.sub(Vec3(), target, position)
    const unit = (2 * Math.tan(this.canvas3d.camera.state.fov / 2) * Vec3.magnitude(depth)) / this.canvas.clientHeight
    const right = Vec3.normalize(Vec3(), Vec3.cross(Vec3(), depth, up))
    const above = Vec3.normalize(Vec3(), Vec3.cross(Vec3(), right, depth))
    return [0, 1, 2].map((i) => unit * (dx * right[i]! - dy * above[i]!)) as [number, number, number]
  }

  reset() {
    this.canvas3d.requestCameraReset()
    this.canvas3d.requestDraw()
  }

  /** Turns the camera so that the longest axis is horizontal and fills the image. */
  orient() {
    const { origin, dirA, dirB, dirC } = StructureElement.Loci.getPrincipalAxesMany(this.entries.map((e) => Structure.toStructureElementLoci(e.structure))).boxAxes
    const aspect = this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight)
    this.canvas3d.camera.focus(origin, Math.max(Vec3.magnitude(dirA) / aspect, Vec3.magnitude(dirB)) + edge, 0, dirB, dirC)
    this.canvas3d.requestDraw()
  }

  /** Resolves when everything added has been drawn. */
  async drawn(): Promise<void> {
    await new Promise<void>((resolve) => {
      const wait = () => (this.ended || this.canvas3d.commitQueueSize.value === 0 ? requestAnimationFrame(() => resolve()) : requestAnimationFrame(wait))
      requestAnimationFrame(wait)
    })
    if (!this.ended) await settled(this.context.webgl)
  }

  picture(): Promise<Blob> {
    this.canvas3d.requestDraw()
    this.canvas3d.tick(performance.now() as never, { isSynchronous: true })
    return new Promise((resolve, reject) => this.canvas.toBlob((b) => (b ? resolve(b) : reject(new Error('The browser could not create the picture.')))))
  }

  /** Removes everything from the scene, for reuse. */
  clear() {
    for (const d of [...this.entries.flatMap((e) => e.drawn), ...this.around]) this.drop(d)
    this.entries.length = 0
    this.around = []
    this.found = []
    this.look = undefined
  }

  dispose() {
    this.ended = true
    this.sight.disconnect()
    this.subscriptions.forEach((s) => s.unsubscribe())
    this.canvas3d.pause(true)
    this.clear()
    this.box?.destroy()
    this.canvas3d.dispose()
    this.context.dispose()
    this.assets.dispose()
  }
}

/** The Cα trace of the longest chain, for superposition. */
function chainTrace(polymer: Structure): StructureElement.Loci {
  const longest = [...polymer.units].sort((a, b) => b.elements.length - a.elements.length)[0]
  if (!longest) return StructureElement.Loci.none(polymer)
  return StructureElement.Loci.fromSchema(polymer, { label_asym_id: StructureProperties.chain.label_asym_id(StructureElement.Location.create(polymer, longest, longest.elements[0])), label_atom_id: 'CA' })
}

function followed(entry: Entry): Parts {
  const polymer = entry.drawn.find((d) => d.kind !== 'sticks' || !entry.parts.rest)?.structure
  const rest = entry.parts.rest && entry.drawn.at(-1)?.structure
  return { ...(entry.parts.polymer && polymer && { polymer }), ...(rest && { rest }) }
}

const bondAtom = StructureElement.Location.create()

function atomOf(loci: Loci): StructureElement.Location | undefined {
  if (StructureElement.Loci.is(loci)) return StructureElement.Loci.getFirstLocation(loci)
  if (!Bond.isLoci(loci)) return undefined
  const b = loci.bonds[0]
  const element = b?.aUnit.elements[b.aIndex]
  return b && element !== undefined ? StructureElement.Location.set(bondAtom, b.aStructure, b.aUnit, element) : undefined
}
