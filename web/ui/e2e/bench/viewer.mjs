// The viewer: time until ready, how long it blocks the page, and the playback rate.
import { big, config } from './big.mjs'
import { median, ms, tasks, Watched } from './watched.mjs'

export { config }

export default async function ({ server, browser, tell }) {
  const key = server.key('lab', 'ann@lab.example')
  const ann = await browser.person(server)
  const watched = await Watched.of(ann)
  const { page } = ann
  await ann.signIn(key)
  for (const [name, kind, size, what] of [['chain', 'chain', 140, 'a protein of 140 residues'], ['motion', 'motion', 140, 'a trajectory of 140 residues, 100 frames'], ['large', 'assembly', 100_000, 'an assembly of 100,000 atoms']]) {
    await big(server, key, name, kind, size)
    const times = []
    const longest = []
    for (let i = 0; i < 3; i++) {
      await watched.begin()
      const began = Date.now()
      await ann.open('jobs/' + name)
      await page.locator('[data-ready]').waitFor({ timeout: 120_000 })
      times.push(Date.now() - began)
      longest.push(await watched.longest())
    }
    tell(`viewer with ${what}: ready`, ms(median(times)))
    tell(`viewer with ${what}: longest task`, tasks({ wall: median(longest.map((l) => l.wall)), cpu: median(longest.map((l) => l.cpu)) }))
    if (kind === 'motion') tell('the same, playing', await playing(page))
    if (kind === 'assembly') tell('the same, the heap', `${(await watched.heap()).toFixed(0)} MB`)
  }
  ann.fine('the viewer')
  await ann.close()
}

async function playing(page) {
  await page.getByRole('button', { name: 'Play' }).click()
  await page.waitForTimeout(500)
  const count = await page.evaluate(async () => {
    const slider = document.querySelector('input[aria-label=Frame]')
    let frames = 0
    let last = slider.value
    const end = performance.now() + 5000
    while (performance.now() < end) {
      await new Promise((r) => setTimeout(r, 5))
      if (slider.value !== last) frames += (Number(slider.value) - Number(last) + 100) % 100
      last = slider.value
    }
    return frames
  })
  await page.getByRole('button', { name: 'Pause' }).click()
  return `${(count / 5).toFixed(1)} frames/s`
}
