// Pictures of canvases, as files.
import { offer } from './csv'

export interface KeyEntry { label: string; colour: string }

const lineHeight = 18 // pixels

/** Offers a canvas as PNG of a name on its background, with title and key. */
export async function savePicture(canvas: HTMLCanvasElement, file: string, title: string, key: readonly KeyEntry[], background: string, ink: string) {
  const scale = devicePixelRatio
  const out = document.createElement('canvas')
  out.width = canvas.width
  out.height = canvas.height + scale * lineHeight * (key.length + 2)
  const c = out.getContext('2d')!
  c.fillStyle = background
  c.fillRect(0, 0, out.width, out.height)
  c.scale(scale, scale)
  c.font = '13px system-ui, sans-serif'
  c.fillStyle = ink
  c.fillText(title, 8, lineHeight)
  c.drawImage(canvas, 0, 1.5 * lineHeight, canvas.width / scale, canvas.height / scale)
  key.forEach((k, i) => {
    const y = 2.2 * lineHeight + canvas.height / scale + i * lineHeight
    c.fillStyle = k.colour
    c.fillRect(8, y - 6, 16, 3)
    c.fillStyle = ink
    c.fillText(k.label, 30, y)
  })
  const blob = await new Promise<Blob | null>((resolve) => out.toBlob(resolve))
  if (blob) offer(file, blob)
}

/** Calls fn when the colours of the page change. */
export function whenColoursChange(fn: () => void): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const watch = new MutationObserver(fn)
  dark.addEventListener('change', fn)
  watch.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
  return () => {
    dark.removeEventListener('change', fn)
    watch.disconnect()
  }
}

/** The page's colours at an element whose class is `colours`. */
export function coloursAt(probe: HTMLElement): { ink: string; muted: string; line: string; background: string } {
  const s = getComputedStyle(probe)
  return { ink: s.color, muted: s.outlineColor, line: s.borderTopColor, background: s.backgroundColor }
}
