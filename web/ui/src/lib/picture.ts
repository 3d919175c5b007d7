// Saving figures as files, and the colors of the page.
import { offer } from './csv'
import type { Drawing } from './figure'

const pixels = 2008 // across 170 mm at 300 dpi
// The PNG chunk for 11,811 pixels per meter, which is 300 dpi.
const density = new Uint8Array([0, 0, 0, 9, 0x70, 0x48, 0x59, 0x73, 0, 0, 0x2e, 0x23, 0, 0, 0x2e, 0x23, 1, 0x78, 0xa5, 0x3f, 0x76])
const head = 33 // bytes of a PNG's signature and IHDR

/** Sets the resolution of a PNG to 300 dpi. */
export const withDensity = (png: Blob) => new Blob([png.slice(0, head), density, png.slice(head)], { type: 'image/png' })

export const saveSVG = (d: Drawing, file: string) => offer(file, d.svg, 'image/svg+xml')

/** Downloads a figure as a 300-dpi PNG. */
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

/** Calls fn when the colors of the page change. */
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

/** The colors of the page, read from a hidden element whose style sets them. */
export function coloursAt(probe: HTMLElement): { ink: string; muted: string; line: string } {
  const s = getComputedStyle(probe)
  return { ink: s.color, muted: s.outlineColor, line: s.borderTopColor }
}
