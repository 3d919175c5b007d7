// Figures as files, and the colours of the page.
import { offer } from './csv'
import type { Drawing } from './figure'

const pixels = 2008 // across 170 mm at 300 dpi
// The chunk of a PNG that says 11,811 pixels per metre, which is 300 dpi.
const density = new Uint8Array([0, 0, 0, 9, 0x70, 0x48, 0x59, 0x73, 0, 0, 0x2e, 0x23, 0, 0, 0x2e, 0x23, 1, 0x78, 0xa5, 0x3f, 0x76])
const head = 33 // bytes of a PNG's signature and IHDR

/** Says in a PNG that it has 300 dpi. */
export const withDensity = (png: Blob) => new Blob([png.slice(0, head), density, png.slice(head)], { type: 'image/png' })

export const saveSVG = (d: Drawing, file: string) => offer(file, d.svg, 'image/svg+xml')

/** Offers a figure as PNG of 300 dpi. */
export async function savePNG(d: Drawing, file: string) {
  const url = URL.createObjectURL(new Blob([d.svg], { type: 'image/svg+xml' }))
  try {
    const image = new Image()
    image.src = url
    await image.decode()
    const canvas = document.createElement('canvas')
    canvas.width = pixels
    canvas.height = Math.round((pixels * d.height) / d.width)
    canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height)
    const png = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve))
    if (png) offer(file, withDensity(png))
  } finally {
    URL.revokeObjectURL(url)
  }
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
export function coloursAt(probe: HTMLElement): { ink: string; muted: string; line: string } {
  const s = getComputedStyle(probe)
  return { ink: s.color, muted: s.outlineColor, line: s.borderTopColor }
}
